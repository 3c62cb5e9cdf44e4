package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/raft"
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
	told    *peerStatus // of running: the status that lists this node
	err     error
}

// joining is the decision for a node that joins: it waits where another one would
// found a cluster or give up.
func (d bootDecision) joining(self Member) bootDecision {
	switch d.action {
	case bootCreate:
		return bootDecision{reason: "this node waits to be taken into a cluster that exists: " + joinLine(self, "")}
	case bootRefuse:
		return bootDecision{reason: d.err.Error()}
	}
	return d
}

// joinLine is what to type to have a node taken in that waits.
func joinLine(self Member, member string) string {
	if member == "" {
		return fmt.Sprintf("limitd cluster join %s %s, asked of any member (--addr)", self.ID, self.Peer)
	}
	return fmt.Sprintf("limitd cluster join %s %s --addr %s", self.ID, self.Peer, member)
}

// decideBootstrap judges one round of answers. members is the list of the
// configuration, this node (with raftID) among them; answers are from the others,
// in any order.
func decideBootstrap(self Member, raftID string, members []Member, answers []bootAnswer) bootDecision {
	exists, refused := whatExists(answers)
	if exists != nil {
		for _, sv := range exists.Servers {
			switch {
			case sv.RaftID == raftID && (exists.stands() || sv.Voter): // an empty voter is one of the founders
				return bootDecision{action: bootRun, told: exists}
			case sv.RaftID == raftID:
				return bootDecision{reason: "this node is being taken in"}
			case nodeID(sv.RaftID) == self.ID:
				err := fmt.Errorf("the cluster of %s does not know this node: %s", exists.RaftID, stranger(raftID, sv.RaftID))
				return bootDecision{action: bootRefuse, err: err}
			}
		}
		return bootDecision{reason: fmt.Sprintf("the cluster of %s exists without this node: start it with --join %s, or type: %s", exists.RaftID, exists.Resp, joinLine(self, exists.Resp))}
	}
	if refused != nil {
		return bootDecision{action: bootRefuse, err: refused}
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

// whatExists is the newest configuration that was told, one that stands if there is
// one; or else why a member refuses this node, which may lag behind.
func whatExists(answers []bootAnswer) (exists *peerStatus, refused error) {
	for _, a := range answers {
		if s := a.status; s != nil && len(s.Servers) > 0 && s.newerThan(exists) {
			exists = s
		}
		var ref *refusal
		if errors.As(a.err, &ref) && ref.code == refusedStranger && !ref.local {
			refused = fmt.Errorf("%s refuses this node: %s", ref.raftID, ref.text)
		}
	}
	return exists, refused
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
