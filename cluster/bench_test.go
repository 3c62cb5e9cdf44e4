package cluster

import (
	"bytes"
	"testing"
	"time"

	"limitd/fsm"
)

// BenchmarkCommit is one batch after the other through three nodes that sync
// their logs, as limiter's rounds go.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{100, 100 << 10} {
		b.Run(map[int]string{100: "small", 100 << 10: "100KiB"}[size], func(b *testing.B) {
			c := startTestCluster(b, 3, func(cfg *Config) {
				cfg.Heartbeat, cfg.Election, cfg.Lease = time.Second, time.Second, time.Second
			})
			defer c.stop()
			l := c.leader()
			state := bytes.Repeat([]byte("x"), 1000)
			b.ReportAllocs()
			for b.Loop() {
				turn, err := l.Begin()
				if err != nil {
					b.Fatal(err)
				}
				effects := make([]fsm.Effect, max(size/1000, 1))
				for i := range effects {
					effects[i] = fsm.Effect{Op: fsm.OpReplace, Key: []byte{byte(i)}, Ident: []byte{1}, State: state[:min(size, 1000)], Expiry: turn.At + 1e9}
				}
				if _, o := l.Commit(fsm.AppendEntry(nil, turn, effects)); o != fsm.Applied {
					b.Fatal(o)
				}
			}
		})
	}
}
