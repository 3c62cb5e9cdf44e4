package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// voters are the members that have a vote.
func voters(servers []raft.Server) []raft.Server {
	var vs []raft.Server
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			vs = append(vs, s)
		}
	}
	return vs
}

// checkQuorum refuses a change after which fewer of the voters would answer, and be
// caught up, than must for anything to be admitted. A leader that was elected a moment
// ago has not heard from all yet, and a busy voter may lack what is in flight: it waits
// as long as a voter may be silent and count as healthy.
func (n *Node) checkQuorum(ctx context.Context, what string, after []raft.Server) error {
	end := time.After(2 * n.cfg.Heartbeat)
	for {
		err := quorumAfter(what, after, n.shortOf)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(n.cfg.Heartbeat / 20):
		case <-end:
			return err
		case <-ctx.Done():
			return err
		case <-n.stopping:
			return err
		}
	}
}

// healthy says of a member that it is this node, or has acknowledged a request of this
// leader within two heartbeat timeouts.
func (n *Node) healthy(id raft.ServerID) bool {
	if id == n.serverID() {
		return true
	}
	ack, ok := n.acks.peer(id, n.raft.Load().CurrentTerm())
	return ok && n.clock.Boot()-ack.heard <= 2*int64(n.cfg.Heartbeat)
}

// shortOf says why a voter would not help a majority now, "": it would. One may answer
// heartbeats and get none of the log.
func (n *Node) shortOf(id raft.ServerID) string {
	switch {
	case id == n.serverID():
		return ""
	case !n.healthy(id):
		return "does not answer"
	}
	if lacks := n.lacks(id); lacks > caughtUpEntries {
		return fmt.Sprintf("lacks %d entries of the log, %d are allowed", lacks, caughtUpEntries)
	}
	return ""
}

// lacks is how many entries of this leader's log a member is not known to have.
func (n *Node) lacks(id raft.ServerID) uint64 {
	r := n.raft.Load()
	last := r.LastIndex()
	ack, _ := n.acks.peer(id, r.CurrentTerm())
	return last - min(ack.match, last)
}

// quorumAfter says what is wrong with a configuration that has these voters.
func quorumAfter(what string, after []raft.Server, shortOf func(raft.ServerID) string) error {
	var short, why []string
	for _, s := range after {
		if w := shortOf(s.ID); w != "" {
			short, why = append(short, name(s)), append(why, name(s)+" "+w)
		}
	}
	need := len(after)/2 + 1
	if len(after)-len(short) >= need {
		return nil
	}
	who, are := strings.Join(short, " and "), "are"
	if len(short) == 1 {
		are = "is"
	}
	return fmt.Errorf("%s %d voters and %d must answer and be caught up; %s: wait for %s or remove %s first; FORCE goes ahead and risks that nothing is admitted until %s %s back",
		what, len(after), need, strings.Join(why, " and "), who, who, who, are)
}
