package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"limitd/cluster"
	"limitd/resp"
)

// TestWhoElectsItself: what the configuration lists does not tell how many vote.
func TestWhoElectsItself(t *testing.T) {
	for _, c := range []struct {
		role   string
		voters int
		want   bool
	}{
		{"leader", 1, true}, {"follower", 1, true}, {"candidate", 1, true},
		{"follower", 3, false}, {"leader", 2, false},
		{"nonvoter", 1, false}, // of a cluster with one voter, which is another node
		{"waiting", 0, false}, {"joining", 0, false},
	} {
		if got := onlyVoter(cluster.Status{Role: c.role, Voters: c.voters}); got != c.want {
			t.Errorf("%s of %d voters: %v", c.role, c.voters, got)
		}
	}
}

// TestHowARemovedNodeEnds: a supervisor must not start a node again that was
// removed, and need not be told about one that left as it was asked.
func TestHowARemovedNodeEnds(t *testing.T) {
	gone := fmt.Errorf("%w: move the data directory away", cluster.ErrRemoved)
	for _, c := range []struct {
		name string
		gone removal
		last string // of the log
		code error
	}{
		{"stopped by a signal", removal{}, "msg=stopped", nil},
		{"removed", removal{reason: gone}, "", gone},
		{"asked to leave", removal{reason: gone, asked: true}, "has left the cluster, as it was asked to", nil},
	} {
		var log bytes.Buffer
		s := newServer(slog.New(slog.NewTextHandler(&log, nil)))
		err := s.end(c.gone)
		if !errors.Is(err, c.code) || err != nil && !errors.As(err, new(*fatalError)) || !strings.Contains(log.String(), c.last) {
			t.Errorf("%s: %v, log %q", c.name, err, &log)
		}
	}
}

// TestLeavingIsKnownByWhoAsked: the node learns of its removal while the client
// that asked for it still waits, or later; a refusal long ago does not count.
func TestLeavingIsKnownByWhoAsked(t *testing.T) {
	cfg := DefaultConfig()
	self := NodeConfig{ID: "n1", Peer: "127.0.0.1:7381"}
	for _, c := range []struct {
		name   string
		during bool // the node learns of it
		err    error
		op     cluster.ChangeOp
		asked  bool
	}{
		{"left, and told after the answer", false, nil, cluster.ChangeLeave, true},
		{"left, and told before the answer", true, nil, cluster.ChangeLeave, true},
		{"told before an answer that is an error", true, errors.New("not known"), cluster.ChangeLeave, true},
		{"refused, and removed later", false, errors.New("too few voters"), cluster.ChangeLeave, false},
		{"removed through itself", false, nil, cluster.ChangeRemove, false},
	} {
		s := newServer(slog.New(slog.DiscardHandler))
		removed := s.clusterConfig(cfg, self, joining{}).Removed
		err := s.change(cluster.Change{Op: c.op}, func(cluster.Change) error {
			if c.during {
				removed(cluster.ErrRemoved)
			}
			return c.err
		})
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.during {
			removed(cluster.ErrRemoved)
		}
		if got := <-s.removed; got.asked != c.asked || !errors.Is(got.reason, cluster.ErrRemoved) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestNotTakenInIsAnErrorAndNoFailStop: the exit codes tell them apart.
func TestNotTakenInIsAnErrorAndNoFailStop(t *testing.T) {
	for err, failStop := range map[error]bool{
		fmt.Errorf("%w: n4 is a member", cluster.ErrJoinRefused): false,
		errors.New("write of the log failed"):                    true,
	} {
		s := newServer(slog.New(slog.DiscardHandler))
		s.fatal(err)
		s.fatal(errors.New("a second reason"))
		s.fatal(errors.New("a third one, which must not block"))
		if got := <-s.failed; !errors.Is(got, err) || errors.As(got, new(*fatalError)) != failStop {
			t.Errorf("%v became %#v", err, got)
		}
	}
}

func TestTheWireKnowsWhatPasses(t *testing.T) {
	for _, c := range []struct {
		err  error
		pass bool
	}{
		{nil, false},
		{errors.New("n3 does not answer"), false},
		{fmt.Errorf("no leader is known: %w", cluster.ErrNotNow), true},
	} {
		var got cluster.Change
		a := admin{change: func(ch cluster.Change) error { got = ch; return c.err }}
		err := a.Change(resp.Change{Op: resp.ChangeJoin, ID: "n4", Peer: "p", NonVoter: true, Force: true})
		if (err == nil) != (c.err == nil) || errors.Is(err, resp.ErrNotNow) != c.pass || err != nil && err.Error() != c.err.Error() {
			t.Errorf("%v became %v", c.err, err)
		}
		if want := (cluster.Change{Op: cluster.ChangeJoin, ID: "n4", Peer: "p", NonVoter: true, Force: true}); got != want {
			t.Errorf("asked for %+v, want %+v", got, want)
		}
	}
	for _, op := range []resp.ChangeOp{resp.ChangeJoin, resp.ChangePromote, resp.ChangeDemote, resp.ChangeRemove, resp.ChangeLeave, resp.ChangeTransfer} {
		switch cluster.ChangeOp(op) {
		case cluster.ChangeJoin, cluster.ChangePromote, cluster.ChangeDemote, cluster.ChangeRemove, cluster.ChangeLeave, cluster.ChangeTransfer:
		default:
			t.Errorf("%s means nothing to the node", op)
		}
	}
}
