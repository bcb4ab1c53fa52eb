// Evaluates PromQL with Prometheus' own engine, for crates/promql/tests/oracle.rs.
//
// Reads one JSON object a line and writes one for each query. Everything that Prometheus calls
// experimental in the language is on; samples are floats.
//
//	{"load": [{"labels": {"__name__": "up"}, "t": [0, 1000], "v": ["1", "stale"]}]}
//	{"query": "up", "start": 0, "end": 1000, "step": 500, "lookback": 300000, "delayed": false}
//
// Times and durations are milliseconds; a step of 0 is an instant query at start.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// memory holds series in the order of their labels.
type memory []series

func (m memory) Querier(mint, maxt int64) (storage.Querier, error) {
	return querier{memory: m, mint: mint, maxt: maxt}, nil
}

type querier struct {
	memory     memory
	mint, maxt int64
}

// Select trims to the range of the hints, as the head and blocks of Prometheus do.
func (q querier) Select(_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	if hints != nil {
		mint, maxt = hints.Start, hints.End
	}
	set := &set{at: -1}
	for _, s := range q.memory {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			continue
		}
		in := make([]chunks.Sample, 0, len(s.samples))
		for _, sample := range s.samples {
			if sample.T() >= mint && sample.T() <= maxt {
				in = append(in, sample)
			}
		}
		if len(in) > 0 {
			set.series = append(set.series, storage.NewListSeries(s.labels, in))
		}
	}
	return set
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series              { return s.series[s.at] }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

type loaded struct {
	Labels map[string]string `json:"labels"`
	T      []int64           `json:"t"`
	V      []string          `json:"v"`
}

type request struct {
	Load     []loaded `json:"load"`
	Query    string   `json:"query"`
	Start    int64    `json:"start"`
	End      int64    `json:"end"`
	Step     int64    `json:"step"`
	Lookback int64    `json:"lookback"`
	Delayed  bool     `json:"delayed"`
}

type outSeries struct {
	Labels map[string]string `json:"labels"`
	T      []int64           `json:"t"`
	V      []string          `json:"v"`
}

type response struct {
	Type      string      `json:"type,omitempty"`
	Series    []outSeries `json:"series"`
	Text      string      `json:"text,omitempty"`
	Warnings  []string    `json:"warnings"`
	Infos     []string    `json:"infos"`
	Error     string      `json:"error,omitempty"`
	ErrorType string      `json:"errorType,omitempty"`
	Printed   string      `json:"printed,omitempty"`
}

func load(from []loaded) memory {
	var m memory
	for _, l := range from {
		s := series{labels: labels.FromMap(l.Labels)}
		for i, t := range l.T {
			v := math.Float64frombits(value.StaleNaN)
			if l.V[i] != "stale" {
				parsed, err := strconv.ParseFloat(l.V[i], 64)
				if err != nil {
					panic(err)
				}
				v = parsed
			}
			s.samples = append(s.samples, sample{t, v})
		}
		m = append(m, s)
	}
	slices.SortFunc(m, func(a, b series) int { return labels.Compare(a.labels, b.labels) })
	return m
}

func text(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func newEngine(delayed bool, p parser.Parser) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples:               50_000_000,
		Timeout:                  2 * time.Minute,
		LookbackDelta:            5 * time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		EnableDelayedNameRemoval: delayed,
		Parser:                   p,
	})
}

func errorType(err error) string {
	switch err.(type) {
	case promql.ErrQueryCanceled:
		return "canceled"
	case promql.ErrQueryTimeout:
		return "timeout"
	case promql.ErrStorage:
		return "internal"
	}
	return "execution"
}

func run(engine *promql.Engine, p parser.Parser, m memory, r request) response {
	opts := promql.NewPrometheusQueryOpts(false, time.Duration(r.Lookback)*time.Millisecond, nil)
	ctx := context.Background()
	var query promql.Query
	var err error
	if r.Step == 0 {
		query, err = engine.NewInstantQuery(ctx, m, opts, r.Query, time.UnixMilli(r.Start))
	} else {
		query, err = engine.NewRangeQuery(ctx, m, opts, r.Query, time.UnixMilli(r.Start), time.UnixMilli(r.End), time.Duration(r.Step)*time.Millisecond)
	}
	if err != nil {
		return response{Error: err.Error(), ErrorType: "bad_data"}
	}
	defer query.Close()
	var out response
	if expr, err := p.ParseExpr(r.Query); err == nil {
		out.Printed = expr.String()
	}
	result := query.Exec(ctx)
	out.Warnings, out.Infos = result.Warnings.AsStrings(r.Query, 0, 0)
	slices.Sort(out.Warnings)
	slices.Sort(out.Infos)
	if result.Err != nil {
		out.Error, out.ErrorType = result.Err.Error(), errorType(result.Err)
		return out
	}
	out.Type = string(result.Value.Type())
	switch v := result.Value.(type) {
	case promql.String:
		out.Text = v.V
	case promql.Scalar:
		out.Series = []outSeries{{T: []int64{v.T}, V: []string{text(v.V)}}}
	case promql.Vector:
		for _, s := range v {
			out.Series = append(out.Series, outSeries{Labels: s.Metric.Map(), T: []int64{s.T}, V: []string{text(s.F)}})
		}
	case promql.Matrix:
		for _, s := range v {
			o := outSeries{Labels: s.Metric.Map()}
			for _, p := range s.Floats {
				o.T, o.V = append(o.T, p.T), append(o.V, text(p.F))
			}
			out.Series = append(out.Series, o)
		}
	}
	return out
}

func main() {
	p := parser.NewParser(parser.Options{
		EnableExperimentalFunctions: true,
		EnableBinopFillModifiers:    true,
		EnableUnquotedUTF8Names:     true,
	})
	engines := map[bool]*promql.Engine{false: newEngine(false, p), true: newEngine(true, p)}
	var m memory
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var r request
			if err := json.Unmarshal(line, &r); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(2)
			}
			if r.Load != nil {
				m = load(r.Load)
			} else if err := out.Encode(run(engines[r.Delayed], p, m, r)); err != nil {
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}
