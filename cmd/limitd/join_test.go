package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"limitd/cluster"
)

// answersWith is a member that answers every command with reply, except for the
// client library's HELLO; without a reply it never answers. It returns its address
// and the commands.
func answersWith(t *testing.T, reply string) (addr string, asked <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	commands := make(chan string, 100)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				b := make([]byte, 1<<10)
				for {
					n, err := c.Read(b)
					switch got := string(b[:n]); {
					case err != nil:
						return
					case strings.Contains(strings.ToLower(got), "hello"):
						io.WriteString(c, "-ERR unknown command 'HELLO'\r\n")
					default:
						commands <- got
						if reply != "" {
							io.WriteString(c, reply+"\r\n")
						}
					}
				}
			}()
		}
	}()
	return ln.Addr().String(), commands
}

func TestJoinSaysWhoAndWhere(t *testing.T) {
	for _, nonVoter := range []bool{false, true} {
		addr, asked := answersWith(t, "+OK")
		j := &joiner{member: client{addr: addr}, peer: "127.0.0.1:7384", log: slog.New(slog.DiscardHandler)}
		if err := j.ask(context.Background(), "n4-0a1b2c3d", nonVoter); err != nil {
			t.Fatal(err)
		}
		want := []string{"RL.CLUSTER", "JOIN", "n4-0a1b2c3d", "127.0.0.1:7384"}
		if nonVoter {
			want = append(want, "NONVOTER")
		}
		words := slices.DeleteFunc(strings.Fields(<-asked), func(s string) bool { return s[0] == '*' || s[0] == '$' })
		if !slices.Equal(words, want) {
			t.Errorf("it sent %q, want %q", words, want)
		}
	}
}

// TestOnlyADecisionEndsJoining: a node that gives up because the cluster elects
// just now has to be started by hand; one that never gives up hides the reason.
func TestOnlyADecisionEndsJoining(t *testing.T) {
	for _, c := range []struct {
		reply string
		final string // in the reason; empty: it is asked again
	}{
		{"-CLUSTERDOWN no leader is known", ""},
		{"-TRYAGAIN join n4: another change is under way", ""},
		{"-LOADING this node is loading its state", ""},
		{"-ERR max number of clients reached", ""},
		{"no RESP at all", ""},
		{"-ERR join n4: n4-aaaaaaaa is a member: remove it first: limitd cluster remove n4", "in: join n4: n4-aaaaaaaa is a member: remove it first"},
		{"-ERR unknown command 'RL.CLUSTER'", "unknown command"},
		{"-NOAUTH Authentication required.", "NOAUTH Authentication required."},
	} {
		addr, _ := answersWith(t, c.reply)
		j := &joiner{member: client{addr: addr}, peer: "127.0.0.1:7384", log: slog.New(slog.DiscardHandler)}
		err := j.ask(context.Background(), "n4-0a1b2c3d", false)
		if err == nil || errors.Is(err, cluster.ErrJoinRefused) != (c.final != "") || !strings.Contains(err.Error(), c.final) {
			t.Errorf("%s: %v, want final: %q", c.reply, err, c.final)
		}
	}
	j := &joiner{member: client{addr: freeAddress(t)}, peer: "127.0.0.1:7384", log: slog.New(slog.DiscardHandler)}
	if err := j.ask(context.Background(), "n4-0a1b2c3d", false); err == nil || errors.Is(err, cluster.ErrJoinRefused) {
		t.Errorf("nobody listens: %v, want an error that passes", err)
	}
}

// TestJoiningCanBeStopped: a member that hangs must not hold up SIGTERM.
func TestJoiningCanBeStopped(t *testing.T) {
	addr, asked := answersWith(t, "")
	j := &joiner{member: client{addr: addr}, peer: "127.0.0.1:7384", log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.ask(ctx, "n4-0a1b2c3d", false) }()
	<-asked
	cancel()
	select {
	case err := <-ended:
		if err == nil || errors.Is(err, cluster.ErrJoinRefused) {
			t.Errorf("%v, want an error that passes", err)
		}
	case <-time.After(joinTimeout / 2):
		t.Fatal("it waits on")
	}
}

func TestWaitingToJoinIsToldNowAndThen(t *testing.T) {
	addr, _ := answersWith(t, "-CLUSTERDOWN no leader is known")
	for _, c := range []struct {
		remind time.Duration
		lines  int
	}{{time.Hour, 1}, {0, 4}} {
		var log bytes.Buffer
		j := &joiner{member: client{addr: addr}, peer: "127.0.0.1:7384", log: slog.New(slog.NewTextHandler(&log, nil)), remind: c.remind}
		for range 4 {
			j.ask(context.Background(), "n4-0a1b2c3d", false)
		}
		if n := strings.Count(log.String(), "\n"); n != c.lines || !strings.Contains(log.String(), "no leader is known") || !strings.Contains(log.String(), addr) {
			t.Errorf("every %v: %d lines, want %d:\n%s", c.remind, n, c.lines, &log)
		}
	}
}

func TestWrongJoinFlagsAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.toml")
	if err := os.WriteFile(file, []byte(threeNodes), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--non-voter", "--non-voter is for a node that joins: add --join"},
		{"--config " + file + " --node n1 --non-voter", "--non-voter is for a node that joins"},
		{"--join=", `--join: "" is no host:port`},
		{"--join 127.0.0.1", `--join: "127.0.0.1" is no host:port`},
		{"--join 127.0.0.1:0", `--join: "127.0.0.1:0" has no port from 1 to 65535`},
		{"--join 127.0.0.1:6380", "--join 127.0.0.1:6380: that is this node itself"},
		{"--join 127.0.0.1:7380", "--join 127.0.0.1:7380: that is this node itself"},
		{"--config " + file + " --node n3 --join 127.0.0.1:6383", "that is this node itself"},
		{"--config " + file + " --node n3 --join 127.0.0.1:7381", "that is the peer address of n1: give its address for clients, 127.0.0.1:6381"},
		{"--config " + file + " --node n4 --join 127.0.0.1:6381", "--node n4 is not in " + file},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		var out bytes.Buffer
		args := append([]string{"serve", "--data-dir", dir}, strings.Fields(c.args)...)
		if code := run(context.Background(), args, &out, &out); code != exitError || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: code %d, want %q\n%s", c.args, code, c.want, &out)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the data directory was made", c.args)
		}
	}
}

func TestJoinIsHandedToTheNode(t *testing.T) {
	cfg := DefaultConfig()
	self := NodeConfig{ID: "n4", RESP: "127.0.0.1:6384", Peer: "127.0.0.1:7384", Data: "x"}
	cfg.Nodes = []NodeConfig{self}
	s := newServer(slog.New(slog.DiscardHandler))
	if c := s.clusterConfig(cfg, self, joining{}); c.Join != nil || c.NonVoter {
		t.Error("a node without --join asks to be taken in")
	}
	addr, asked := answersWith(t, "+OK")
	c := s.clusterConfig(cfg, self, joining{member: addr, nonVoter: true})
	if c.Join == nil || !c.NonVoter {
		t.Fatalf("%+v", c)
	}
	if err := c.Join(context.Background(), "n4-0a1b2c3d", c.NonVoter); err != nil || !strings.Contains(<-asked, "127.0.0.1:7384") {
		t.Error(err)
	}
}
