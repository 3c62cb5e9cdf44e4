package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"limitd/proc"
)

// loadPatience bounds one run of redis-benchmark.
const loadPatience = 3 * time.Minute

// benchmark is one run of redis-benchmark: 200 connections, 64 calls in a row on each.
type benchmark struct {
	requests int
	keys     int // __rand_int__ is below it
	args     []string
}

// run returns the calls per second that redis-benchmark counted. It stops at
// the first error reply.
func (l benchmark) run(ctx context.Context, addr string) (float64, error) {
	wait, err := l.start(ctx, addr)
	if err != nil {
		return 0, err
	}
	return wait()
}

// start is run in two parts. It is for the main thread, whose time slices redis-benchmark inherits; wait must be called.
func (l benchmark) start(ctx context.Context, addr string) (wait func() (float64, error), err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, loadPatience)
	args := append([]string{"-h", host, "-p", port, "-c", "200", "-P", "64",
		"-r", strconv.Itoa(l.keys), "-n", strconv.Itoa(l.requests), "--csv"}, l.args...)
	cmd := exec.CommandContext(ctx, "redis-benchmark", args...)
	var out, says strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &says
	failed := func(err error) error {
		return fmt.Errorf("redis-benchmark at %s (%s): %w", addr, strings.Join(l.args, " "), err)
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, failed(err)
	}
	return func() (float64, error) {
		defer cancel()
		if err := cmd.Wait(); err != nil {
			return 0, failed(fmt.Errorf("%w: %s", err, strings.TrimSpace(says.String())))
		}
		return parseRate(out.String())
	}, nil
}

// parseRate reads redis-benchmark's CSV: a header, and one line with the rate
// in the column "rps".
func parseRate(text string) (float64, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 2 {
		return 0, fmt.Errorf("redis-benchmark printed %q, not two lines of CSV (%v)", text, err)
	}
	for i, column := range rows[0] {
		if column == "rps" {
			return strconv.ParseFloat(rows[1][i], 64)
		}
	}
	return 0, fmt.Errorf("redis-benchmark printed no column rps: %q", rows[0])
}

// keyName is what redis-benchmark makes of key:__rand_int__.
func keyName(i int) string { return fmt.Sprintf("key:%012d", i) }

// seed charges every key once, in pipelines on several connections. The call
// must be one that is denied when it was charged before, so that a batch with
// an answer in doubt can be sent again: a denial then says that it was charged.
func seed(ctx context.Context, client *redis.Client, keys int, call func(key string) []any) error {
	return seedKeys(ctx, client, keys, keyName, call)
}

// seedKeys is seed with keys of other names.
func seedKeys(ctx context.Context, client *redis.Client, keys int, name func(int) string, call func(key string) []any) error {
	const writers, batch = 8, 1000
	errs := make(chan error, writers)
	for w := range writers {
		go func() {
			from, to := keys*w/writers, keys*(w+1)/writers
			var err error
			for ; from < to && err == nil; from += batch {
				err = seedBatch(ctx, client, from, min(from+batch, to), name, call)
			}
			errs <- err
		}()
	}
	var all []error
	for range writers {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func seedBatch(ctx context.Context, client *redis.Client, from, to int, name func(int) string, call func(key string) []any) error {
	again := false
	return proc.Await(ctx, "seed keys from "+name(from), readyPatience, func(ctx context.Context) error {
		pipe := client.Pipeline()
		for i := from; i < to; i++ {
			pipe.Do(ctx, call(name(i))...)
		}
		replies, err := pipe.Exec(ctx)
		if err != nil {
			again = true
			return err
		}
		for i, r := range replies {
			got, err := r.(*redis.Cmd).Int64Slice()
			if err != nil || len(got) != 5 || (got[0] != 0 && !again) {
				return proc.Permanent(fmt.Errorf("%s: %v, %v: not admitted", name(from+i), got, err))
			}
		}
		return nil
	})
}

func words(text string) []string { return strings.Fields(text) }

func anys(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}
