package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"limitd/cluster"
	"limitd/limiter"
	"limitd/resp"
)

// startingServer is a cluster of one that is opened and not started.
func startingServer(t *testing.T) (*server, net.Listener, *redis.Client) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	cfg := DefaultConfig()
	self := NodeConfig{ID: "n1", RESP: "127.0.0.1:0", Peer: freeAddress(t), Data: filepath.Join(t.TempDir(), "n1")}
	cfg.Nodes = []NodeConfig{self}
	s := newServer(log)
	var err error
	if s.node, err = cluster.Open(s.clusterConfig(cfg, self, joining{}), nil); err != nil {
		t.Fatal(err)
	}
	s.limiter = limiter.New(s.limiterConfig(cfg.Limits, 0), s.node.FSM(), s.node, s.node)
	s.node.SetHandler(s.limiter.Serve)
	s.resp = resp.NewServer(respConfig(cfg, 0, log), s.limiter, s.admin())
	ln, err := net.Listen("tcp", self.RESP)
	if err != nil {
		t.Fatal(err)
	}
	r := redis.NewClient(&redis.Options{Addr: ln.Addr().String(), Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { r.Close() })
	return s, ln, r
}

// TestClientsOfALongStartAreToldAndThenServed: a large state takes seconds to
// load, and a call must be answered within its time.
func TestClientsOfALongStartAreToldAndThenServed(t *testing.T) {
	s, ln, r := startingServer(t)
	release, up := make(chan struct{}), make(chan error, 1)
	go func() {
		up <- s.bringUp(func() error { <-release; return s.start() }, ln, time.Millisecond)
	}()
	ask := func() error { return r.Do(context.Background(), "CL.THROTTLE", "k", 9, 1, 60).Err() }
	if err := ask(); err == nil || !strings.HasPrefix(err.Error(), "LOADING ") {
		t.Fatalf("while it loads: %v, want LOADING", err)
	}
	info := func() string { return r.Info(context.Background(), "persistence").Val() }
	if got := info(); !strings.Contains(got, "loading:1\r\n") {
		t.Errorf("INFO while it loads:\n%s", got)
	}
	for _, cmd := range [][]any{{"PING"}, {"RL.CLUSTER", "STATUS"}, {"RL.CLUSTER", "NODES"}, {"RL.TIME"}, {"RL.HASH"}, {"DBSIZE"}, {"SCAN", 0}, {"INFO"}} {
		if err := r.Do(context.Background(), cmd...).Err(); err != nil {
			t.Errorf("%v while it loads: %v", cmd, err)
		}
	}
	if err := r.Do(context.Background(), "RL.SNAPSHOT", "SAVE").Err(); err == nil {
		t.Error("a snapshot was saved of a state that is not loaded")
	}
	var beside sync.WaitGroup // asks while the start goes on, for the race detector
	started := make(chan struct{})
	for _, cmd := range [][]any{{"RL.CLUSTER", "STATUS"}, {"RL.CLUSTER", "NODES"}, {"RL.CLUSTER", "TRANSFER"}, {"CL.THROTTLE", "b", 9, 1, 60}, {"SCAN", 0}} {
		beside.Go(func() {
			for {
				r.Do(context.Background(), cmd...) // an error is as good an answer
				select {
				case <-started:
					return
				default:
				}
			}
		})
	}
	close(release)
	err := <-up
	close(started)
	beside.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(); err != nil {
		t.Errorf("after the start: %v", err)
	}
	if got := info(); !strings.Contains(got, "loading:0\r\n") {
		t.Errorf("INFO after the start:\n%s", got)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestAStartThatFailsEndsTheWait: nobody is told LOADING for ever.
func TestAStartThatFailsEndsTheWait(t *testing.T) {
	for _, patience := range []time.Duration{time.Millisecond, time.Minute} {
		s, ln, _ := startingServer(t)
		broken := errors.New("the state is damaged")
		release := make(chan struct{})
		up := make(chan error, 1)
		go func() { up <- s.bringUp(func() error { <-release; return broken }, ln, patience) }()
		close(release)
		select {
		case err := <-up:
			if !errors.Is(err, broken) {
				t.Errorf("patience %v: %v", patience, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("patience %v: it waits on", patience)
		}
		s.limiter.Close()
		ln.Close()
		s.resp.Close()
		s.node.Close()
	}
}
