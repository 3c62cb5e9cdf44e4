package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"limitd/resp"
)

// fakeNode is a node that notes the changes that it is asked for.
type fakeNode struct {
	changes []resp.Change
	err     error
}

func (f *fakeNode) Status() resp.Status           { return resp.Status{} }
func (f *fakeNode) Nodes() []resp.NodeInfo        { return nil }
func (f *fakeNode) Hashes() []resp.HashPoint      { return nil }
func (f *fakeNode) SaveSnapshot() (string, error) { return "", nil }
func (f *fakeNode) Change(c resp.Change) error {
	f.changes = append(f.changes, c)
	return f.err
}

// listen serves the node on loopback until the test ends.
func (f *fakeNode) listen(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := resp.NewServer(resp.Config{Logger: slog.New(slog.DiscardHandler)}, nil, f)
	go s.Serve(ln)
	t.Cleanup(func() { s.Close() })
	return ln.Addr().String()
}

func TestChangeVerbsAskForWhatTheySay(t *testing.T) {
	f := &fakeNode{}
	at := f.listen(t)
	for _, c := range []struct {
		args string
		want resp.Change
		text string
		json string
	}{
		{"join n4 127.0.0.1:7384", resp.Change{Op: resp.ChangeJoin, ID: "n4", Peer: "127.0.0.1:7384"}, "n4 is a member; it gets its vote once it is caught up", `"joined": "n4"`},
		{"join n4 127.0.0.1:7384 --non-voter", resp.Change{Op: resp.ChangeJoin, ID: "n4", Peer: "127.0.0.1:7384", NonVoter: true}, "n4 is a member without a vote", `"joined": "n4"`},
		{"promote n4", resp.Change{Op: resp.ChangePromote, ID: "n4"}, "n4 has a vote", `"promoted": "n4"`},
		{"demote n4 --force", resp.Change{Op: resp.ChangeDemote, ID: "n4", Force: true}, "n4 has no vote any more", `"demoted": "n4"`},
		{"remove n4-0a1b2c3d", resp.Change{Op: resp.ChangeRemove, ID: "n4-0a1b2c3d"}, "n4-0a1b2c3d is no member any more", `"removed": "n4-0a1b2c3d"`},
		{"remove n4 --force", resp.Change{Op: resp.ChangeRemove, ID: "n4", Force: true}, "n4 is no member any more", `"removed": "n4"`},
		{"leave", resp.Change{Op: resp.ChangeLeave}, "the node at " + at + " has left and stops", `"left": "` + at + `"`},
		{"leave --force", resp.Change{Op: resp.ChangeLeave, Force: true}, "has left", `"left"`},
		{"transfer", resp.Change{Op: resp.ChangeTransfer}, "leadership is handed over", `"transferred": true`},
		{"transfer n2", resp.Change{Op: resp.ChangeTransfer, ID: "n2"}, "leadership is handed over", `"transferred": true`},
	} {
		for _, asJSON := range []bool{false, true} {
			f.changes, f.err = nil, nil
			args, want := append([]string{"cluster", "--addr", at}, strings.Fields(c.args)...), c.text
			if asJSON {
				args, want = append(args, "--json"), c.json
			}
			var out, errs bytes.Buffer
			code := run(context.Background(), args, &out, &errs)
			if code != exitOK || errs.Len() > 0 || !strings.Contains(out.String(), want) {
				t.Errorf("%s: code %d, want %q\n%s%s", c.args, code, want, &out, &errs)
			}
			if !slices.Equal(f.changes, []resp.Change{c.want}) {
				t.Errorf("%s asked for %+v", c.args, f.changes)
			}
		}

		f.err = errors.New("n3 does not answer: wait for n3 or remove n3 first")
		var out, errs bytes.Buffer
		code := run(context.Background(), append([]string{"cluster", "--addr", at}, strings.Fields(c.args)...), &out, &errs)
		if code != exitError || out.Len() > 0 || !strings.Contains(errs.String(), f.err.Error()) || strings.Contains(errs.String(), "may have been made") {
			t.Errorf("%s is refused: code %d\n%s%s", c.args, code, &out, &errs)
		}
	}
}

func TestWrongChangeVerbsAskNothing(t *testing.T) {
	f := &fakeNode{}
	at := f.listen(t)
	for _, c := range []struct{ args, want string }{
		{"leave", "--addr is missing: say which node is to leave"},
		{"leave n4 --addr " + at, "unknown command"},
		{"join n4 --addr " + at, "accepts 2 arg(s)"},
		{"join n4 7384 --addr " + at, "peer-address: '7384' is no host:port"},
		{"join n4 127.0.0.1:7384 --force --addr " + at, "unknown flag: --force"},
		{"remove --addr " + at, "accepts 1 arg(s)"},
		{"promote n4 n5 --addr " + at, "accepts 1 arg(s)"},
		{"demote n4 --non-voter --addr " + at, "unknown flag: --non-voter"},
		{"transfer n2 --force --addr " + at, "unknown flag: --force"},
	} {
		var out bytes.Buffer
		code := run(context.Background(), append([]string{"cluster"}, strings.Fields(c.args)...), &out, &out)
		if code != exitError || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: code %d, want %q\n%s", c.args, code, c.want, &out)
		}
	}
	if len(f.changes) > 0 {
		t.Errorf("asked for %+v", f.changes)
	}
}

// TestAChangeWithoutAnAnswerIsInDoubt: who types it again, or moves a data
// directory away, must know that it may have been made.
func TestAChangeWithoutAnAnswerIsInDoubt(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1<<10))
			c.Close()
		}
	}()
	for addr, doubt := range map[string]bool{ln.Addr().String(): true, freeAddress(t): false} {
		var out bytes.Buffer
		code := run(context.Background(), []string{"cluster", "remove", "n2", "--addr", addr}, &out, &out)
		if code != exitError || strings.Contains(out.String(), "may have been made: see `limitd cluster nodes`") != doubt {
			t.Errorf("in doubt is %v: code %d, %s", doubt, code, &out)
		}
	}
}
