package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// waiting is a node without --join that waits for somebody to have it taken in: the
// configuration file lists it beside the members.
func (c *testCluster) waiting(id string) *testNode {
	return c.newcomer(id, func(cfg *Config) {
		cfg.Join = nil
		for _, tn := range c.nodes {
			if tn.cfg.ID != id {
				cfg.Members = append(cfg.Members, tn.cfg.self())
			}
		}
	})
}

func (tn *testNode) awaitFatal(words ...string) {
	t := tn.cluster.t
	t.Helper()
	eventually(t, tn.cfg.ID+" to give up", func() bool { return tn.fatalReason() != nil })
	for _, w := range words {
		if err := tn.fatalReason(); !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not said: %v", w, err)
		}
	}
}

func TestNodeJoinsWhenAnOperatorAsksForIt(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	n4 := c.waiting("n4")
	c.start(n4)
	eventually(t, "it to see the cluster", func() bool { return !n4.bootstrap().isMember() })
	c.refuses(n4, Change{Op: ChangeLeave}, "in no cluster yet")
	c.refuses(l, Change{Op: ChangeJoin, ID: "n5", Peer: n4.cfg.self().Peer}, n4.raftID, "not n5", "correct the peer address")
	if n4.joining.wants() != joinsAsVoter {
		t.Error("it does not know that it was invited")
	}
	c.change(l, Change{Op: ChangeJoin, ID: "n4", Peer: n4.cfg.self().Peer, NonVoter: true})
	eventually(t, "n4 to follow", func() bool { return n4.raft.Load() != nil && n4.role() == "nonvoter" && n4.FSM().Applied() > 0 })
	if n4.joining.wants() != joinsAsNonVoter {
		t.Errorf("it wants to be a %q", n4.joining.wants())
	}
	c.change(l, Change{Op: ChangeJoin, ID: "n4", Peer: n4.cfg.self().Peer}) // made already
	c.change(n4, Change{Op: ChangePromote, ID: "n4"})
	c.awaitVoters(c.nodes...)
	eventually(t, "it to forget that it joined", func() bool { return n4.joining.wants() == joinsNot })
}

// Whatever step a node was stopped at, it goes on from there when it is started
// again, and it never founds a cluster of its own.
func TestJoinerIsStoppedAtEachStep(t *testing.T) {
	errStep := errors.New("stopped here")
	for _, step := range []string{"before it asked", "when it was invited", "when it was a member", "when it had the log"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			c := startTestCluster(t, 3)
			l := c.leader()
			put(t, l, "before")
			n4 := c.newcomer("n4")
			join := n4.cfg.Join
			var reached atomic.Bool
			n4.cfg.Join = func(ctx context.Context, raftID string, nonVoter bool) error {
				defer reached.Store(true)
				switch step {
				case "when it was invited":
					if _, err := l.invite(Change{ID: raftID, Peer: n4.cfg.self().Peer}, invitation{Voter: true}); err != nil {
						t.Error(err)
					}
				case "when it was a member":
					if err := join(ctx, raftID, nonVoter); err != nil {
						t.Error(err)
					}
				case "when it had the log":
					return join(ctx, raftID, nonVoter)
				}
				return errStep
			}
			c.start(n4)
			eventually(t, "the step", reached.Load)
			if step == "when it had the log" {
				eventually(t, "the log", func() bool { return has(n4, "before") })
			}
			raftID := n4.raftID
			n4.Close()

			n4.cfg.Join = nil
			n, err := Open(n4.cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = n.Start()
			if founded := n.raft.Load() != nil; step != "when it had the log" && (err == nil || !strings.Contains(err.Error(), "--join") || founded) {
				t.Errorf("without --join: %v, raft runs: %v", err, founded)
			}
			n.Close()
			n4.cfg.Join = join
			c.start(n4)
			if n4.raftID != raftID {
				t.Errorf("it was %s and is %s", raftID, n4.raftID)
			}
			c.awaitVoters(c.nodes...)
			eventually(t, "all that was written", func() bool { return has(n4, "before") })
		})
	}
}

func TestLeaderChangesWhileANodeJoins(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	old := c.leader()
	n4 := c.newcomer("n4")
	c.start(n4)
	eventually(t, "n4 to be a member", func() bool { _, ok := findServer(old.configuration().Servers, "n4"); return ok })
	old.Close()
	next := c.leader(old)
	c.awaitMembers(c.others(old), c.nodes...)
	put(t, next, "after")
	c.start(old)
	c.awaitVoters(c.nodes...)
}

// A disk died: its node comes back empty, at the same address.
func TestNodeWithAnEmptyDiskReplacesTheMemberThatItWas(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "before")
	n := c.others(l)[0]
	other := c.others(l)[1]
	id, old := n.cfg.ID, n.raftID
	n.Close()
	n.wipe()
	c.start(n)
	var err error
	unreached := func() bool { return err != nil && strings.Contains(err.Error(), "was reached at") }
	eventually(t, "the leader to reach it", func() bool { // unless it has given up before
		err = l.Change(Change{Op: ChangeJoin, ID: id, Peer: n.cfg.self().Peer})
		return !unreached() || n.fatalReason() != nil
	})
	if !unreached() && (err == nil || !strings.Contains(err.Error(), old) || !strings.Contains(err.Error(), "limitd cluster remove "+id)) {
		t.Errorf("the leader says: %v", err)
	}
	n.awaitFatal(old, n.raftID, "limitd cluster remove "+id, "--join")
	if n.raft.Load() != nil {
		t.Error("raft runs on an empty log")
	}
	n.forget()
	c.restart(n, func(cfg *Config) { cfg.Join = c.joinFor(n) })
	n.awaitFatal(old, "limitd cluster remove "+id)
	if !errors.Is(n.fatalReason(), ErrJoinRefused) {
		t.Errorf("%v is no ErrJoinRefused", n.fatalReason())
	}
	c.change(other, Change{Op: ChangeRemove, ID: id})
	c.restart(n)
	c.awaitVoters(c.nodes...)
	eventually(t, "what was written before", func() bool { return has(n, "before") })
	if n.raftID == old {
		t.Error("the new disk has the old raft id")
	}
	for _, row := range l.Nodes() {
		if row.ID == id && row.RaftID != n.raftID {
			t.Errorf("the leader has %+v", row)
		}
	}
}

func TestNodeOfAnotherClusterIsNotTakenIn(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	other := startTestCluster(t, 1)
	x := other.leader()
	put(t, x, "of its own")
	c.refuses(l, Change{Op: ChangeJoin, ID: x.raftID, Peer: x.cfg.self().Peer}, "n1 is a member already")
	for _, id := range []string{"n4", "n4-00000000"} {
		c.refuses(l, Change{Op: ChangeJoin, ID: id, Peer: x.cfg.self().Peer}, x.raftID, "cluster")
	}
	c.awaitVoters(c.nodes...)
}

// A node that was a member once has data: it cannot join with that.
func TestNodeWithDataIsNotTakenIn(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	out := c.others(l)[0]
	out.awaitListed()
	c.change(l, Change{Op: ChangeRemove, ID: out.cfg.ID})
	out.awaitRemoved()
	c.refuses(l, Change{Op: ChangeJoin, ID: out.raftID, Peer: out.cfg.self().Peer}, out.raftID, "holds data", "move its data directory away", "--join")
}

// The first node that it asks has not heard yet that the member before it was removed.
func TestNewNodeDoesNotGiveUpWhenAMemberLagsBehind(t *testing.T) {
	for _, joins := range []bool{true, false} {
		t.Run(fmt.Sprint("joins: ", joins), func(t *testing.T) {
			d := decideBootstrap(three[1], id2, three, []bootAnswer{
				says(1, memberOf(id1, 9, id1, id3)),
				silent(3, &refusal{code: refusedStranger, raftID: id3, text: "n2-00000002 is no member, but " + old2 + " is"}),
			})
			if d.action != bootWait {
				t.Errorf("a member lags: %+v", d)
			}
			d = decideBootstrap(three[1], id2, three, []bootAnswer{
				silent(1, errors.New("connection refused")),
				silent(3, &refusal{code: refusedStranger, raftID: id3, text: "n2-00000002 is no member, but " + old2 + " is"}),
			})
			if joins {
				d = d.joining(three[1])
			}
			if joins != (d.action == bootWait) {
				t.Errorf("nobody but a member that lags answers: %+v", d)
			}
		})
	}
}

// Two who dial one another do not agree on who is a member, and both are of the
// cluster: the one that lags must not keep the other away.
func TestMemberThatLagsTakesANewMemberUnderAKnownNodeID(t *testing.T) {
	l := startPeers(t, "n5-00000005", withCluster(1), knows("n3-00000003", "n3-0000000f"))
	d := startPeers(t, "n3-00000003", withCluster(1))
	conn, err := d.dial(t.Context(), l.Addr(), purposeRPC, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestMemberIsMovedToAnotherPeerAddress(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := startTestCluster(t, 3)
	l := c.leader()
	n := c.others(l)[0]
	put(t, l, "before")
	eventually(t, "it to have the log", func() bool { return has(n, "before") })
	moved := freeAddr(t)
	c.restart(n, func(cfg *Config) {
		cfg.Members = append([]Member{}, cfg.Members...)
		for i := range cfg.Members {
			if cfg.Members[i].ID == cfg.ID {
				cfg.Members[i].Peer = moved
			}
		}
		cfg.Logger = logTo(&log)
	})
	eventually(t, "a warning", func() bool { return strings.Contains(log.String(), "another peer address") })
	for _, w := range []string{moved, "limitd cluster join " + n.cfg.ID + " " + moved} {
		if !strings.Contains(log.String(), w) {
			t.Errorf("%q is not said:\n%s", w, log.String())
		}
	}
	if got := strings.Count(log.String(), "another peer address"); got != 1 {
		t.Errorf("it is said %d times", got)
	}
	c.change(l, Change{Op: ChangeJoin, ID: n.cfg.ID, Peer: moved})
	c.awaitVoters(c.nodes...)
	put(t, c.leader(), "moved")
	eventually(t, "the member to follow", func() bool { return has(n, "moved") })
	if s, _ := findServer(l.configuration().Servers, n.raftID); s.Suffrage != raft.Voter || string(s.Address) != moved {
		t.Errorf("it is %+v", s)
	}
}

// The leader is in the middle of a request to the old address, and tries it again and again.
func TestMemberThatWasAwayIsReplicatedToAtItsNewAddress(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "before")
	c.converge()
	n := c.others(l)[0]
	n.Close()
	put(t, l, "while it was away")
	moved := freeAddr(t)
	n.cfg.Members = append([]Member{}, n.cfg.Members...)
	for i := range n.cfg.Members {
		if n.cfg.Members[i].ID == n.cfg.ID {
			n.cfg.Members[i].Peer = moved
		}
	}
	c.start(n)
	c.change(l, Change{Op: ChangeJoin, ID: n.cfg.ID, Peer: moved})
	eventually(t, "what was written meanwhile", func() bool { return has(n, "while it was away") })
}

// Another member is asked at its new address first. The leader would ask nobody, and the
// others would look for it there until it is removed.
func TestLeaderIsNotMovedToWhereItDoesNotListen(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	l := c.leader()
	base := l.committedConfiguration()
	for _, id := range []string{l.cfg.ID, l.raftID} {
		err := l.takeIn(t.Context(), base, Change{Op: ChangeJoin, ID: id, Peer: freeAddr(t)})
		if err == nil || !strings.Contains(err.Error(), "leads, and its peer address is "+l.cfg.self().Peer) || !strings.Contains(err.Error(), "start it with that one first") {
			t.Errorf("%s: %v", id, err)
		}
	}
	if s, _ := findServer(l.configuration().Servers, l.raftID); string(s.Address) != l.cfg.self().Peer {
		t.Errorf("it is %+v", s)
	}
	there := Change{Op: ChangeJoin, ID: l.cfg.ID, Peer: l.cfg.self().Peer}
	if err := l.takeIn(t.Context(), base, there); err != nil {
		t.Errorf("it is there already: %v", err)
	}
	base.servers = []raft.Server{{ID: l.serverID(), Suffrage: raft.Voter, Address: "127.0.0.1:1"}}
	if err := l.takeIn(t.Context(), base, there); err != nil {
		t.Errorf("it was started with another address: %v", err)
	}
}

// It would follow whoever reached it first, and the other one would count it as a member too.
func TestNodeThatTwoClustersInviteJoinsTheFirst(t *testing.T) {
	t.Parallel()
	a, b := startTestCluster(t, 1), startTestCluster(t, 1)
	la, lb := a.leader(), b.leader()
	put(t, la, "of a")
	put(t, lb, "of b")
	x := a.newcomer("x", func(cfg *Config) {
		cfg.Join = func(context.Context, string, bool) error { return errors.New("later") }
	})
	a.start(x)
	ask := Change{Op: ChangeJoin, ID: "x", Peer: x.cfg.self().Peer, NonVoter: true}
	if _, err := lb.peers.askStatus(ask.Peer, testPatience); err != nil { // it has a connection from before
		t.Fatal(err)
	}
	if _, err := la.invite(ask, invitation{Leader: la.cfg.self().Peer}); err != nil {
		t.Fatal(err)
	}
	b.refuses(lb, ask, x.raftID, "was invited into cluster "+la.Status().ClusterID, "started again")
	for _, to := range []struct {
		from, to *testNode
	}{{lb, x}, {x, lb}} {
		conn, err := to.from.peers.dial(t.Context(), to.to.cfg.self().Peer, purposeRaft, testPatience)
		if err == nil {
			conn.Close()
		}
		if !refusedAs(err, refusedCluster) {
			t.Errorf("%s speaks to %s: %v", to.from.raftID, to.to.raftID, err)
		}
	}
	if len(lb.configuration().Servers) != 1 {
		t.Errorf("the other cluster has %+v", lb.configuration().Servers)
	}
	a.change(la, ask)
	eventually(t, "it to follow the first", func() bool { return has(x, "of a") })
	if has(x, "of b") {
		t.Error("it has both")
	}
}

func TestInvitationWithADamagedClusterID(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	for _, id := range []string{"x", "00", strings.Repeat("0", 34)} {
		if err := c.leader().accept(invitation{ClusterID: id}); err == nil || !strings.Contains(err.Error(), "no cluster id") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
