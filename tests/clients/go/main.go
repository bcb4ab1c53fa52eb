// The behaviour that applications using go-redis rely on: writes, backfill, label queries,
// compaction rules, transactions, and replies of the types the client promises.
//
//	REDIS_PORT=6379 RESP=2 [CA_FILE=ca.crt] go run .
//
// The server must be empty. Exits with status 0 if all replies are correct.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const hour = 3_600_000

var (
	ctx    = context.Background()
	resp   = number("RESP", 2)
	client = redis.NewClient(&redis.Options{
		Addr:      fmt.Sprintf("127.0.0.1:%d", number("REDIS_PORT", 6379)),
		Protocol:  resp,
		TLSConfig: tlsConfig(),
	})
)

// tlsConfig trusts the authorities of CA_FILE; without one, the connection is not encrypted.
func tlsConfig() *tls.Config {
	file := os.Getenv("CA_FILE")
	if file == "" {
		return nil
	}
	roots := x509.NewCertPool()
	same("certificates are read", roots.AppendCertsFromPEM(must(os.ReadFile(file))), true)
	return &tls.Config{RootCAs: roots, ServerName: "localhost"}
}

func main() {
	same("keys of the server", must(client.DBSize(ctx).Result()), int64(0))
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"writes and reads", writesAndReads},
		{"backfills", backfills},
		{"queries by label", queriesByLabel},
		{"uses rules", usesRules},
		{"alters and expires", altersAndExpires},
	} {
		part.run()
		fmt.Printf("go-redis, RESP%d: %s\n", resp, part.name)
	}
}

func writesAndReads() {
	labels := map[string]string{"site": "north", "unit": "celsius"}
	options := &redis.TSOptions{DuplicatePolicy: "LAST", Labels: labels}
	same("create", must(client.TSCreateWithArgs(ctx, "room:1", options).Result()), "OK")
	same("add", must(client.TSAdd(ctx, "room:1", 1000, 20.5).Result()), int64(1000))
	south := &redis.TSOptions{Labels: map[string]string{"site": "south", "unit": "celsius"}}
	must(client.TSAddWithArgs(ctx, "room:2", 1000, 18, south).Result())
	written := must(client.TSMAdd(ctx, [][]interface{}{{"room:1", 2000, 20.75}, {"room:2", 2000, 19}}).Result())
	same("madd", written, []int64{2000, 2000})
	same("get", must(client.TSGet(ctx, "room:1").Result()), sample(2000, 20.75))
	same("range", must(client.TSRange(ctx, "room:1", 0, 5000).Result()), samples(1000, 20.5, 2000, 20.75))
	newest := &redis.TSRevRangeOptions{Count: 1}
	same("revrange", must(client.TSRevRangeWithArgs(ctx, "room:1", 0, 5000, newest).Result()), samples(2000, 20.75))
	at := func(timestamp int64) *redis.TSIncrDecrOptions { return &redis.TSIncrDecrOptions{Timestamp: timestamp} }
	same("incrby", must(client.TSIncrByWithArgs(ctx, "counter", 3, at(5)).Result()), int64(5))
	same("decrby", must(client.TSDecrByWithArgs(ctx, "counter", 1, at(6)).Result()), int64(6))
	same("counter", must(client.TSRange(ctx, "counter", 0, 10).Result()), samples(5, 3, 6, 2))
	same("del", must(client.TSDel(ctx, "counter", 0, 5).Result()), int64(1))
	refused(client.TSGet(ctx, "nowhere").Err(), "the key does not exist")
	refused(client.TSCreate(ctx, "room:1").Err(), "already exists")
}

func backfills() {
	// A day of minutes, sent in a shuffled order in one pipeline, then corrected.
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for at := 0; at < 1440; at++ {
			minute := at * 641 % 1440
			pipe.TSAdd(ctx, "late", minute*60_000, float64(minute%60))
		}
		for at := 0; at < 24; at++ {
			// This client has no option for ON_DUPLICATE.
			pipe.Do(ctx, "TS.ADD", "late", at*hour, 60, "ON_DUPLICATE", "LAST")
		}
		return nil
	})
	check(err)
	all := must(client.TSRange(ctx, "late", 0, 24*hour).Result())
	same("number of samples", len(all), 1440)
	for at, found := range all {
		same("timestamp", found.Timestamp, int64(at*60_000))
	}
	highest := &redis.TSRangeOptions{Aggregator: redis.Max, BucketDuration: hour}
	same("hours", must(client.TSRangeWithArgs(ctx, "late", 0, 2*hour-1, highest).Result()), samples(0, 60, hour, 60))
	count := &redis.TSRangeOptions{
		Aggregator: redis.Count, BucketDuration: hour / 2, FilterByValue: []int{30, 60},
	}
	same("counts", must(client.TSRangeWithArgs(ctx, "late", 0, hour-1, count).Result()), samples(0, 1, hour/2, 30))
}

func queriesByLabel() {
	celsius := []string{"unit=celsius"}
	same("queryindex", must(client.TSQueryIndex(ctx, celsius).Result()), []string{"room:1", "room:2"})
	others := []string{"unit=celsius", "site!=north"}
	same("queryindex", must(client.TSQueryIndex(ctx, others).Result()), []string{"room:2"})

	refused(client.TSMGet(ctx, []string{"site!=north"}).Err(), "at least one matcher")
	if resp == 2 {
		// The client reads the replies for many series under RESP3 only.
		// It sends labels in the random order of a map, so request an explicit order.
		reply := must(client.Do(ctx, "TS.MGET", "SELECTED_LABELS", "site", "unit", "FILTER", "site=north").Slice())
		labels := list(list("site", "north"), list("unit", "celsius"))
		same("mget", reply, list(list("room:1", labels, list(int64(2000), "20.75"))))
		return
	}
	labels := map[interface{}]interface{}{"site": "north", "unit": "celsius"}
	row1, row2 := list(int64(1000), 20.5), list(int64(2000), 20.75)
	got := must(client.TSMGetWithArgs(ctx, []string{"site=(north,east)"}, &redis.TSMGetOptions{WithLabels: true}).Result())
	same("mget", got, map[string][]interface{}{"room:1": {labels, row2}})

	ranges := must(client.TSMRange(ctx, 0, 5000, celsius).Result())
	same("number of series", len(ranges), 2)
	same("labels nobody asked for", ranges["room:1"][0], map[interface{}]interface{}{})
	same("samples", last(ranges["room:1"]), list(row1, row2))
	newest := &redis.TSMRevRangeOptions{Count: 1, WithLabels: true}
	ranges = must(client.TSMRevRangeWithArgs(ctx, 0, 5000, celsius, newest).Result())
	same("labels", ranges["room:1"][0], labels)
	same("newest", last(ranges["room:1"]), list(row2))

	group := &redis.TSMRangeOptions{GroupByLabel: "unit", Reducer: "max"}
	grouped := must(client.TSMRangeWithArgs(ctx, 0, 5000, celsius, group).Result())
	same("groups", len(grouped), 1)
	same("group", last(grouped["unit=celsius"]), list(row1, row2))
	sources := map[interface{}]interface{}{"sources": list("room:1", "room:2")}
	same("sources", grouped["unit=celsius"][2], sources)
}

func usesRules() {
	must(client.TSCreate(ctx, "hourly").Result())
	same("createrule", must(client.TSCreateRule(ctx, "room:1", "hourly", redis.Avg, hour).Result()), "OK")
	// The last one is late.
	for _, add := range samples(hour, 10, hour+1000, 20, 2*hour, 1, hour+500, 30) {
		must(client.TSAdd(ctx, "room:1", add.Timestamp, add.Value).Result())
	}
	same("hourly", must(client.TSRange(ctx, "hourly", hour, 24*hour).Result()), samples(hour, 20))
	latest := &redis.TSGetOptions{Latest: true}
	same("open bucket", must(client.TSGetWithArgs(ctx, "hourly", latest).Result()), sample(2*hour, 1))
	info := must(client.TSInfo(ctx, "room:1").Result())
	same("totalSamples", info["totalSamples"], int64(6))
	same("duplicatePolicy", info["duplicatePolicy"], "last")
	if resp == 2 {
		same("rules", info["rules"], list(list("hourly", int64(hour), "AVG", int64(0))))
	} else {
		rules := map[interface{}]interface{}{"hourly": list(int64(hour), "AVG", int64(0))}
		same("rules", info["rules"], rules)
	}
	same("sourceKey", must(client.TSInfo(ctx, "hourly").Result())["sourceKey"], "room:1")
	same("deleterule", must(client.TSDeleteRule(ctx, "room:1", "hourly").Result()), "OK")
	refused(client.TSDeleteRule(ctx, "room:1", "hourly").Err(), "compaction rule does not exist")
}

func altersAndExpires() {
	west := &redis.TSAlterOptions{Labels: map[string]string{"site": "west"}}
	same("alter", must(client.TSAlter(ctx, "room:2", west).Result()), "OK")
	same("west", must(client.TSQueryIndex(ctx, []string{"site=west"}).Result()), []string{"room:2"})
	same("south", must(client.TSQueryIndex(ctx, []string{"site=south"}).Result()), []string{})
	same("expire", must(client.PExpire(ctx, "room:2", time.Hour).Result()), true)
	same("ttl", must(client.PTTL(ctx, "room:2").Result()) > time.Minute, true)
	same("type", must(client.Type(ctx, "room:2").Result()), "TSDB-TYPE")
	done, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.TSAdd(ctx, "both", 1, 1)
		pipe.TSAdd(ctx, "both", 2, 2)
		return nil
	})
	check(err)
	same("transaction", done[1].(*redis.IntCmd).Val(), int64(2))
}

func sample(timestamp int64, value float64) redis.TSTimestampValue {
	return redis.TSTimestampValue{Timestamp: timestamp, Value: value}
}

// samples of timestamps and values in turn.
func samples(numbers ...float64) []redis.TSTimestampValue {
	made := []redis.TSTimestampValue{}
	for at := 0; at < len(numbers); at += 2 {
		made = append(made, sample(int64(numbers[at]), numbers[at+1]))
	}
	return made
}

func list(items ...interface{}) []interface{} {
	return append([]interface{}{}, items...)
}

func last(items []interface{}) interface{} {
	return items[len(items)-1]
}

func number(name string, fallback int) int {
	if read, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return read
	}
	return fallback
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func same(what string, actual, expected interface{}) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%s: %#v, expected %#v", what, actual, expected))
	}
}

func refused(err error, words string) {
	if err == nil || !strings.Contains(err.Error(), words) {
		panic(fmt.Sprintf("%v, expected an error with %q", err, words))
	}
}
