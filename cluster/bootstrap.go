package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// How a node with an empty log comes into its cluster. It asks all listed nodes
// again and again what they are, and decides by what it hears in one round:
//
//   - a cluster exists and has this raft id as a member: run raft, the leader
//     sends the log;
//   - a cluster exists and has this node under another raft id: the disk is new,
//     refuse;
//   - no cluster exists, every listed node is empty, and this one is listed
//     first: bootstrap with exactly the raft ids that they told;
//   - else ask again.
//
// So one node alone can bootstrap, and never while a node that may know of a
// cluster is silent. A node with an empty log and no configuration would grant
// its vote to anybody; that is why it does not run raft before it is told.
//
// A node that joins (joining.go) never bootstraps, and is refused by nobody but
// the leader: a member that lags may not know yet that it was taken in, or that the
// one before it was removed.

const (
	pollTimeout = time.Second
	pollEvery   = 200 * time.Millisecond // and up to as much again half, at random
	pollJitter  = 300 * time.Millisecond

	// For how long a refusal must stand before the node gives up: a member that lags
	// behind may not know yet that this one was taken in.
	refusalStands = 3 * time.Second
)

// bootstrap brings a node with an empty log into its cluster.
type bootstrap struct {
	Self    Member
	RaftID  string
	Members []Member
	Logger  *slog.Logger

	Ask     func(addr string, timeout time.Duration) (peerStatus, error) // peers.askStatus
	Joining func() (joins bool, leader string)                           // it joins; peer address of the leader that invited it, if one has
	Found   func() bool                                                  // the last word before Create: it does not join
	Told    func(*peerStatus)                                            // a status lists this node, so it is a member
	Run     func() error                                                 // start raft on the empty log
	Create  func(raft.Configuration) error                               // bootstrap the log, then start raft
}

// errStopped is returned by bootstrap.wait when it was told to stop.
var errStopped = errors.New("stopped before the node was in a cluster")

// wait asks and decides until raft runs (nil), this node must not come in (the
// error says what to do), or stop is closed.
func (b *bootstrap) wait(stop <-chan struct{}) error {
	var (
		told    string
		refused time.Time // since when
	)
	for {
		d := b.round()
		select {
		case <-stop:
			return errStopped
		default:
		}
		switch d.action {
		case bootRun:
			b.Logger.Info("this node is a member; raft starts", "raft_id", b.RaftID)
			return b.Run()
		case bootCreate:
			if !b.Found() {
				continue
			}
			b.Logger.Info("all listed nodes are empty; this one makes the cluster", "raft_id", b.RaftID, "servers", fmt.Sprint(d.servers))
			return b.Create(raft.Configuration{Servers: d.servers})
		case bootRefuse:
			if refused.IsZero() {
				refused = time.Now()
			}
			if time.Since(refused) >= refusalStands {
				return d.err
			}
		default:
			refused = time.Time{}
			if d.reason != told {
				b.Logger.Info("waiting for the cluster", "reason", d.reason)
				told = d.reason
			}
		}
		select {
		case <-stop:
			return errStopped
		case <-time.After(pollEvery + rand.N(pollJitter)):
		}
	}
}

// round asks once and decides.
func (b *bootstrap) round() bootDecision {
	joins, leader := b.Joining()
	d := decideBootstrap(b.Self, b.RaftID, b.Members, b.ask(leader))
	if joins {
		d = d.joining(b.Self)
	}
	if d.action == bootRun {
		b.Told(d.told)
	}
	return d
}

// isMember asks once whether a cluster has this node.
func (b *bootstrap) isMember() bool { return b.round().action == bootRun }

// ask puts the question to all others at once, and to the leader at a peer address
// of its own if there is one.
func (b *bootstrap) ask(leader string) []bootAnswer {
	answers := make([]bootAnswer, 0, len(b.Members)+1)
	for _, m := range b.Members {
		if m.ID != b.Self.ID {
			answers = append(answers, bootAnswer{member: m})
		}
		if m.Peer == leader {
			leader = ""
		}
	}
	if leader != "" {
		answers = append(answers, bootAnswer{member: Member{Peer: leader}})
	}
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			a := &answers[i]
			s, err := b.Ask(a.member.Peer, pollTimeout)
			if err != nil {
				a.err = err
				return
			}
			a.status = &s
		})
	}
	wg.Wait()
	return answers
}
