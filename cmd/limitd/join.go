package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"limitd/cluster"
)

const (
	joinTimeout = 15 * time.Second // the member that is asked tries by itself for about 10 s
	joinRemind  = 10 * time.Second // between two lines of the log about a cluster that does not answer
)

// joining says how a node with an empty data directory comes into a running
// cluster. The zero value: it does not ask.
type joining struct {
	member   string // address for clients of any member
	nonVoter bool
}

// joiner asks for a node, at one member, to be taken in.
type joiner struct {
	member client
	peer   string // where the node waits
	log    *slog.Logger
	remind time.Duration
	said   time.Time // when the log was told last why it goes on waiting
}

// ask asks once. An error that wraps cluster.ErrJoinRefused says why there is no
// use in asking again; any other one passes: the member is not there or not ready,
// or the cluster has no leader just now.
func (j *joiner) ask(ctx context.Context, raftID string, nonVoter bool) error {
	call := []any{"RL.CLUSTER", "JOIN", raftID, j.peer}
	if nonVoter {
		call = append(call, "NONVOTER")
	}
	_, err := j.member.call(ctx, joinTimeout, call...)
	if err = judgeJoin(err); err == nil || errors.Is(err, cluster.ErrJoinRefused) || ctx.Err() != nil {
		return err
	}
	if now := time.Now(); now.Sub(j.said) >= j.remind {
		j.said = now
		j.log.Info("waiting to be taken in; trying again", "through", j.member.addr, "reason", err)
	}
	return err
}

// judgeJoin tells the answers that are final from those that pass.
func judgeJoin(err error) error {
	var answered redis.Error
	if !errors.As(err, &answered) {
		return err // none, or the connection
	}
	code, reason, _ := strings.Cut(answered.Error(), " ")
	switch code {
	case "CLUSTERDOWN", "TRYAGAIN", "LOADING":
		return err
	case "ERR":
		if strings.HasPrefix(reason, "max number of clients") {
			return err
		}
	case "NOAUTH", "WRONGPASS", "NOPERM":
		reason = answered.Error() + ": give this node's file the requirepass of the cluster or a user that may use \"admin\", or set " + envUser + " and " + envPassword
	default:
		reason = answered.Error()
	}
	return fmt.Errorf("%w: %s", cluster.ErrJoinRefused, reason)
}

// check says what is wrong with --join for this node.
func (j joining) check(cfg Config, self NodeConfig) error {
	if _, err := checkAddress(j.member); err != nil {
		return fmt.Errorf("--join: %w: give the address for clients of any member", err)
	}
	if j.member == self.RESP || j.member == self.Peer {
		return fmt.Errorf("--join %s: that is this node itself: give the address for clients of a member", j.member)
	}
	for _, n := range cfg.Nodes {
		if j.member == n.Peer {
			return fmt.Errorf("--join %s: that is the peer address of %s: give its address for clients, %s", j.member, n.ID, n.RESP)
		}
	}
	return nil
}
