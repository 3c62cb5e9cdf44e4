// Command load asks one of limitd's peers by gRPC, many clients at once, each of which
// sends its next call when the one before is answered, and prints what it counted as one
// line of JSON. It is to these peers what bench/load is to servers that speak RESP, in a
// module of its own because their clients would be a burden on limitd's.
//
//	load -peer etcd -addrs 127.0.0.1:2379 -clients 500 -conns 50 -time 6s
//	load -peer gubernator -addrs 127.0.0.1:1051 -keys 200 -limit 100 -calls 30000 -clients 16
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// peer is what is asked.
type peer interface {
	// decide makes one call for a key on a connection. For a store it is admitted
	// if it is stored.
	decide(ctx context.Context, conn int, key string) (admitted bool, err error)
	close() error
}

// limit is what is asked for: so many calls in a time.
type limit struct {
	name   string
	calls  int64
	period time.Duration
}

var peers = map[string]func(ctx context.Context, addrs []string, conns int, l limit) (peer, error){
	"etcd":       dialEtcd,
	"gubernator": dialGubernator,
	"ratelimit":  dialRatelimit,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run() error {
	var p plan
	var l limit
	name := flag.String("peer", "", "`PEER` to ask: etcd, gubernator or ratelimit")
	addrs := flag.String("addrs", "", "its comma-separated `ADDRESSES`; the connections are dealt out to them in turn")
	flag.IntVar(&p.clients, "clients", 500, "clients that ask at the same time")
	flag.IntVar(&p.conns, "conns", 50, "connections that they share")
	flag.IntVar(&p.keys, "keys", 100_000, "keys that they ask for")
	flag.StringVar(&p.prefix, "prefix", "key", "of the keys")
	flag.Int64Var(&p.calls, "calls", 0, "end after so many calls, which ask for each key in turn; 0: after -time")
	flag.DurationVar(&p.warmup, "warmup", time.Second, "time that is not counted, before -time")
	flag.DurationVar(&p.time, "time", 6*time.Second, "time that is counted")
	flag.StringVar(&l.name, "name", "bench", "name of the limit; that of ratelimit must be in its configuration")
	flag.Int64Var(&l.calls, "limit", 1_000_000, "limit of gubernator")
	flag.DurationVar(&l.period, "period", time.Hour, "period of the limit of gubernator")
	flag.Parse()
	dial, ok := peers[*name]
	if !ok {
		return fmt.Errorf("-peer %q: it must be etcd, gubernator or ratelimit", *name)
	}
	if *addrs == "" {
		return errors.New("-addrs: give at least one host:port")
	}
	if err := p.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.warmup+p.time+patience)
	defer cancel()
	peer, err := dial(ctx, strings.Split(*addrs, ","), p.conns, l)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", *name, *addrs, err)
	}
	t := p.run(ctx, peer)
	if err := peer.close(); err != nil {
		return fmt.Errorf("%s at %s: %w", *name, *addrs, err)
	}
	return json.NewEncoder(os.Stdout).Encode(t.report())
}
