package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
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

const (
	pollTimeout = time.Second
	pollEvery   = 200 * time.Millisecond // and up to as much again half, at random
	pollJitter  = 300 * time.Millisecond

	// For how long a refusal must stand before the node gives up: a member that lags
	// behind may not know yet that this one was taken in.
	refusalStands = 3 * time.Second
)

// bootAnswer is what one listed node said in a round: a status, or why not.
type bootAnswer struct {
	member Member
	status *peerStatus
	err    error
}

type bootAction uint8

const (
	bootWait   bootAction = iota // ask again
	bootRun                      // run raft on the empty log
	bootCreate                   // bootstrap with servers, then run raft
	bootRefuse                   // err says why this node cannot come in
)

// bootDecision is what follows from a round.
type bootDecision struct {
	action  bootAction
	reason  string // of waiting, for the log
	servers []raft.Server
	err     error
}

// decideBootstrap judges one round of answers. members is the list of the
// configuration, this node (with raftID) among them; answers are from the others,
// in any order.
func decideBootstrap(self Member, raftID string, members []Member, answers []bootAnswer) bootDecision {
	var exists *peerStatus // the newest configuration that was told
	var refused error
	for _, a := range answers {
		if s := a.status; s != nil && len(s.Servers) > 0 {
			if slices.ContainsFunc(s.Servers, func(sv peerServer) bool { return sv.RaftID == raftID }) {
				return bootDecision{action: bootRun}
			}
			if exists == nil || s.ConfigIndex > exists.ConfigIndex {
				exists = s
			}
		}
		var ref *refusal
		if errors.As(a.err, &ref) && ref.code == refusedStranger && !ref.local {
			refused = fmt.Errorf("%s refuses this node: %s", ref.raftID, ref.text)
		}
	}
	if exists != nil {
		for _, sv := range exists.Servers {
			if nodeID(sv.RaftID) == self.ID {
				refused = fmt.Errorf("the cluster of %s does not know this node: %s", exists.RaftID, stranger(raftID, sv.RaftID))
			}
		}
	}
	if refused != nil {
		return bootDecision{action: bootRefuse, err: refused}
	}
	if exists != nil {
		return bootDecision{reason: fmt.Sprintf("the cluster of %s exists without this node: start it with --join", exists.RaftID)}
	}

	servers, missing := bootServers(self, raftID, members, answers)
	switch {
	case missing != "":
		return bootDecision{reason: missing}
	case members[0].ID != self.ID:
		return bootDecision{reason: fmt.Sprintf("%s, listed first, makes the cluster", members[0].ID)}
	}
	return bootDecision{action: bootCreate, servers: servers}
}

// bootServers is the configuration of a new cluster, or says what is missing.
func bootServers(self Member, raftID string, members []Member, answers []bootAnswer) (servers []raft.Server, missing string) {
	listed := nodeIDs(members)
	var why []string
	for _, m := range members {
		id := raftID
		if m.ID != self.ID {
			i := slices.IndexFunc(answers, func(a bootAnswer) bool { return a.member.ID == m.ID })
			if i < 0 {
				why = append(why, m.ID+" was not asked")
				continue
			}
			a := answers[i]
			switch s := a.status; {
			case s == nil && a.err != nil:
				why = append(why, fmt.Sprintf("%s: %v", m.ID, a.err))
			case s == nil:
				why = append(why, m.ID+": no answer")
			case nodeID(s.RaftID) != m.ID:
				why = append(why, fmt.Sprintf("%s answers at the peer address of %s (%s): correct the peer addresses", s.RaftID, m.ID, m.Peer))
			case !s.Empty || s.ClusterID != "":
				why = append(why, m.ID+" holds data of a cluster, and does not know its members yet")
			case !slices.Equal(s.Listed, listed):
				why = append(why, fmt.Sprintf("%s lists the nodes %s, this node %s: use one configuration file", m.ID, strings.Join(s.Listed, " "), strings.Join(listed, " ")))
			default:
				id = s.RaftID
			}
		}
		servers = append(servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(m.Peer)})
	}
	return servers, strings.Join(why, "; ")
}

// nodeIDs is the list as peerStatus.Listed has it.
func nodeIDs(members []Member) []string {
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.ID
	}
	return ids
}

// bootstrap brings a node with an empty log into its cluster.
type bootstrap struct {
	Self    Member
	RaftID  string
	Members []Member
	Logger  *slog.Logger

	Ask    func(addr string, timeout time.Duration) (peerStatus, error) // peers.askStatus
	Run    func() error                                                 // start raft on the empty log
	Create func(raft.Configuration) error                               // bootstrap the log, then start raft
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
		d := decideBootstrap(b.Self, b.RaftID, b.Members, b.ask())
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

// ask puts the question to all others at once.
func (b *bootstrap) ask() []bootAnswer {
	answers := make([]bootAnswer, 0, len(b.Members))
	for _, m := range b.Members {
		if m.ID != b.Self.ID {
			answers = append(answers, bootAnswer{member: m})
		}
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
