package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"limitd/cluster"
	"limitd/trace"
)

func TestANodeInServiceKnowsNothingOfTheLab(t *testing.T) {
	c := newServe()
	if help := c.UsageString(); strings.Contains(help, "--trace") || strings.Contains(help, "--snapshot-") {
		t.Errorf("the help shows flags of the lab:\n%s", help)
	}
	before := cluster.Config{SnapshotThreshold: 4096, TrailingBytes: 256 << 20}
	after := before
	labFlags{}.hurry(&after)
	if after.SnapshotThreshold != before.SnapshotThreshold || after.TrailingBytes != before.TrailingBytes || after.TrailingFloor != 0 || after.SnapshotPortion != 0 || after.SnapshotInterval != 0 {
		t.Errorf("without the flags the configuration became %+v", after)
	}
}

// TestANodeOfTheLabTracesAndTakesSnapshots: its calls are found by their tags, and a
// handful of entries is enough for a snapshot, which it comes back by.
func TestANodeOfTheLabTracesAndTakesSnapshots(t *testing.T) {
	dir := t.TempDir()
	lab := labFlags{trace: filepath.Join(dir, "n1.jsonl"), snapshotEvery: 8}
	cfg := DefaultConfig()
	self := NodeConfig{ID: "n1", RESP: freeAddress(t), Peer: freeAddress(t), Data: filepath.Join(dir, "data")}
	cfg.Nodes = []NodeConfig{self}
	r := redis.NewClient(&redis.Options{Addr: self.RESP, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { r.Close() })
	run := func(use func(s *server)) {
		s, err := openServer(cfg, self, joining{}, lab, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		use(s)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	run(func(s *server) {
		for tag := uint64(1); ; tag++ {
			if _, err := r.Pipelined(context.Background(), func(p redis.Pipeliner) error {
				p.Do(context.Background(), "RL.TRACE", fmt.Sprint(tag))
				p.Do(context.Background(), "CL.THROTTLE", fmt.Sprint("k", tag), 9, 1, 60)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if s.node.Status().SnapshotIndex >= 8 {
				return
			}
			if tag == 10_000 {
				t.Fatal("no snapshot was taken")
			}
			time.Sleep(time.Millisecond)
		}
	})
	run(func(*server) {})
	tags, restored := map[uint64]int{}, uint64(0)
	if err := trace.Read(lab.trace, func(row trace.Row) error {
		for _, c := range row.Calls {
			tags[c.Tag]++
		}
		if row.Kind == trace.Restored {
			restored = row.Index
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for tag := range uint64(len(tags)) {
		if tags[tag+1] != 1 {
			t.Errorf("call %d is in %d rows", tag+1, tags[tag+1])
		}
	}
	if len(tags) == 0 || restored < 8 {
		t.Errorf("%d calls, restored at %d", len(tags), restored)
	}
}
