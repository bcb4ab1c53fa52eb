// A writer with the cluster client of go-redis, for tests of nodes that come and go.
//
//	PORT=7001 NAME=x go run ./cluster
//
// test_cluster_clients.py says what such a program does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const batch = 5

var (
	ctx     = context.Background()
	seeds   = []string{"127.0.0.1:" + os.Getenv("PORT")}
	rowsKey = "rows:" + os.Getenv("NAME")
	sumKey  = "sum:" + os.Getenv("NAME")
	// Tries again for longer than a take-over lasts. Reads go to followers.
	cluster = redis.NewClusterClient(&redis.ClusterOptions{Addrs: seeds, ReadOnly: true, MaxRedirects: 64})
	// For what must not be sent twice: no command is sent again whose connection ended.
	once = redis.NewClusterClient(&redis.ClusterOptions{Addrs: seeds, MaxRedirects: -1})
)

func main() {
	var done atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		done.Store(true)
	}()
	rows, sent, sum, reads := 0, 0, 0, 0
	for !done.Load() {
		for add(rows) != nil {
			time.Sleep(100 * time.Millisecond)
		}
		rows += batch
		sent++
		if increment() == nil {
			sum++
		} else {
			time.Sleep(100 * time.Millisecond)
			once.ReloadState(ctx)
		}
		if newest, err := cluster.TSGet(ctx, rowsKey).Result(); err == nil {
			if newest.Timestamp > int64(rows) || newest.Value != float64(3*newest.Timestamp) {
				panic(fmt.Sprintf("read %v after %d rows", newest, rows))
			}
			reads++
		}
		fmt.Println(rows, sent, sum, reads)
	}
}

// add writes the rows behind the first ones, in one pipeline. To write them twice changes nothing.
func add(first int) error {
	_, err := cluster.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for at := first + 1; at <= first+batch; at++ {
			pipe.Do(ctx, "TS.ADD", rowsKey, at, 3*at, "ON_DUPLICATE", "LAST")
		}
		return nil
	})
	return err
}

func increment() error {
	return once.TSIncrByWithArgs(ctx, sumKey, 1, &redis.TSIncrDecrOptions{Timestamp: 1}).Err()
}
