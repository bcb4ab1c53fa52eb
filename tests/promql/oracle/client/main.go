// Prometheus' own Go client of the HTTP API, beside a running server.
//
//	go run ./client http://127.0.0.1:8086
//
// The server holds the series of tests/clients/test_promql.py. Prints nothing and exits with status
// 0 if every call answers what it must.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

var failed bool

// same tells of what is not as it must be.
func same(what string, got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		failed = true
		fmt.Fprintf(os.Stderr, "%s: got %v, wanted %v\n", what, got, wanted)
	}
}

func must[T any](value T, warnings v1.Warnings, infos v1.Infos, err error) T {
	if err != nil || len(warnings) > 0 || len(infos) > 0 {
		fmt.Fprintln(os.Stderr, err, warnings, infos)
		os.Exit(1)
	}
	return value
}

func main() {
	client, err := api.NewClient(api.Config{Address: os.Args[1]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, prometheus := context.Background(), v1.NewAPI(client)
	start := time.UnixMilli(1_700_000_000_000)
	end := start.Add(time.Hour)

	vector := must(prometheus.Query(ctx, `sum by (job) (requests_total)`, end)).(model.Vector)
	same("series of a vector", len(vector), 1)
	same("its labels", vector[0].Metric, `{job="web"}`)
	same("its value", float64(vector[0].Value), 240*1.75)
	scalar := must(prometheus.Query(ctx, `1 + 1`, end)).(*model.Scalar)
	same("a scalar", scalar.Value, "2")

	steps := v1.Range{Start: start, End: end, Step: time.Minute}
	matrix := must(prometheus.QueryRange(ctx, `rate(requests_total{host="a"}[5m])`, steps)).(model.Matrix)
	same("series of a matrix", len(matrix), 1)
	same("its steps", len(matrix[0].Values), 60)
	same("the last of them", matrix[0].Values[59].Value, "0.09999999999999999")

	series := must(prometheus.Series(ctx, []string{`requests_total`}, start, end))
	same("series", len(series), 2)
	names := must(prometheus.LabelNames(ctx, []string{`requests_total`}, start, end))
	same("names", names, "__name__, host, job")
	values := must(prometheus.LabelValues(ctx, "host", nil, start, end))
	same("values", values, "[a b]")

	_, _, _, err = prometheus.Query(ctx, `sum(`, end)
	same("a wrong query", strings.Contains(err.Error(), "1:5: parse error: unclosed left parenthesis"), true)
	build, err := prometheus.Buildinfo(ctx)
	same("version", fmt.Sprint(build.Version, err), "3.16.0<nil>")
	rules, err := prometheus.Rules(ctx, nil)
	same("rules", fmt.Sprint(len(rules.Groups), err), "0 <nil>")
	alerts, err := prometheus.Alerts(ctx)
	same("alerts", fmt.Sprint(len(alerts.Alerts), err), "0 <nil>")
	targets, err := prometheus.Targets(ctx)
	same("targets", fmt.Sprint(len(targets.Active), err), "0 <nil>")
	exemplars, err := prometheus.QueryExemplars(ctx, `requests_total`, start, end)
	same("exemplars", fmt.Sprint(len(exemplars), err), "0 <nil>")
	tsdb, err := prometheus.TSDB(ctx)
	same("series of the database", fmt.Sprint(tsdb.HeadStats.NumSeries, err), "3 <nil>")
	flags, err := prometheus.Flags(ctx)
	same("flags", fmt.Sprint(flags["promql-timeout"], err), "120000<nil>")
	runtime, err := prometheus.Runtimeinfo(ctx)
	same("runtime", fmt.Sprint(runtime.ReloadConfigSuccess, err), "true <nil>")
	if failed {
		os.Exit(1)
	}
}
