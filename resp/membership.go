package resp

import (
	"errors"
	"net"
	"strconv"

	"github.com/tidwall/redcon"
)

// ChangeOp is what a [Change] does: the subcommand of RL.CLUSTER.
type ChangeOp string

const (
	ChangeJoin     ChangeOp = "join"     // a node that waits becomes a member
	ChangePromote  ChangeOp = "promote"  // a non-voter gets its vote
	ChangeDemote   ChangeOp = "demote"   // a voter becomes a non-voter
	ChangeRemove   ChangeOp = "remove"   // a member is none any more
	ChangeLeave    ChangeOp = "leave"    // the node asked removes itself
	ChangeTransfer ChangeOp = "transfer" // a voter becomes the leader
)

// Change is a change of the membership or of the leadership.
type Change struct {
	Op       ChangeOp
	ID       string // node id or raft id; leave: empty; transfer: empty is any voter that is caught up
	Peer     string // join: the peer address at which the node waits
	NonVoter bool   // join: it stays a non-voter until it is promoted
	Force    bool   // promote, demote, remove, leave: though the quorum may be lost
}

// ErrNotNow is wrapped by an error of [Admin.Change] that passes: nothing was changed, and
// the same change may succeed later. Clients are told -TRYAGAIN.
var ErrNotNow = errors.New("not now")

// changeCommand makes the handler of a change.
func changeCommand(op ChangeOp) func(*client, []byte, [][]byte) []byte {
	return func(c *client, dst []byte, args [][]byte) []byte {
		ch, wrong := parseChange(op, args)
		if wrong != "" {
			return redcon.AppendError(dst, wrong)
		}
		err := c.srv.admin.Change(ch)
		switch {
		case err == nil:
			return redcon.AppendOK(dst)
		case errors.Is(err, ErrNotNow):
			return redcon.AppendError(dst, "TRYAGAIN "+ch.String()+": "+err.Error())
		}
		return redcon.AppendError(dst, "ERR "+ch.String()+": "+err.Error())
	}
}

// String is the change in words, as errors begin.
func (ch Change) String() string {
	if ch.ID == "" {
		return string(ch.Op)
	}
	return string(ch.Op) + " " + quoted([]byte(ch.ID))
}

// parseChange reads the arguments behind RL.CLUSTER and the subcommand; wrong is
// the error to answer.
func parseChange(op ChangeOp, args [][]byte) (ch Change, wrong string) {
	ch = Change{Op: op}
	rest := args[2:] // the command table knows how many there are at least
	if op != ChangeLeave && len(rest) > 0 {
		if ch.ID, rest = string(rest[0]), rest[1:]; ch.ID == "" {
			return ch, "ERR id: must not be empty"
		}
	}
	if op == ChangeJoin {
		if ch.Peer, rest = string(rest[0]), rest[1:]; !isHostPort(ch.Peer) {
			return ch, "ERR peer-address: '" + quoted([]byte(ch.Peer)) + "' is no host:port"
		}
	}
	switch {
	case len(rest) == 0:
	case len(rest) > 1 || op == ChangeTransfer:
		return ch, errArity("rl.cluster|" + string(op))
	case op == ChangeJoin && is(rest[0], "nonvoter"):
		ch.NonVoter = true
	case op != ChangeJoin && is(rest[0], "force"):
		ch.Force = true
	default:
		return ch, errSyntax
	}
	return ch, ""
}

func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, badPort := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && badPort == nil && n > 0
}
