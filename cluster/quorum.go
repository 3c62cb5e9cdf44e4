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

// checkQuorum refuses a change after which fewer of the voters would answer than
// must for anything to be admitted. A leader that was elected a moment ago has not
// heard from all yet: it waits as long as a voter may be silent and count as healthy.
func (n *Node) checkQuorum(ctx context.Context, what string, after []raft.Server) error {
	end := time.After(2 * n.cfg.Heartbeat)
	for {
		err := quorumAfter(what, after, n.healthy)
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

// quorumAfter says what is wrong with a configuration that has these voters.
func quorumAfter(what string, after []raft.Server, healthy func(raft.ServerID) bool) error {
	var silent []string
	for _, s := range after {
		if !healthy(s.ID) {
			silent = append(silent, name(s))
		}
	}
	need := len(after)/2 + 1
	if len(after)-len(silent) >= need {
		return nil
	}
	who, do, are := strings.Join(silent, " and "), "do", "are"
	if len(silent) == 1 {
		do, are = "does", "is"
	}
	return fmt.Errorf("%s %d voters and %d must answer; %s %s not: wait for %s or remove %s first; FORCE goes ahead and risks that nothing is admitted until %s %s back",
		what, len(after), need, who, do, who, who, who, are)
}
