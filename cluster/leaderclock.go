package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/mutant"
)

// maxLead is the furthest that cluster time moves in one step: no leader makes an
// entry further ahead of the applied time, and none takes effect.
const maxLead = 400 * 24 * time.Hour

// leaderClock is cluster time while this node leads: a base, and the time that
// has gone by since on this machine's boot clock. It is not slewed or stepped.
type leaderClock struct{ base, boot int64 }

// at is cluster time when the boot clock reads boot: never before the applied time,
// and in one step no further than takes effect. A boot clock that says more counts
// as no time at all, and bounded is true.
func (c *leaderClock) at(boot, applied int64) (now int64, bounded bool) {
	return boundBase(c.base+max(boot-c.boot, 0), applied)
}

// batchTime is the time of a batch of leadership l. When the boot clock has run so
// far that it is not believed, cluster time goes on from where it was: in steps of
// maxLead it would fill every bucket once a step. The caller holds the turn.
func (n *Node) batchTime(l *leadership, applied int64) int64 {
	if mutant.On("no-clamp-of-t") {
		return n.clock.Wall()
	}
	boot := n.clock.Boot()
	now, bounded := l.clock.Load().at(boot, applied)
	if bounded {
		l.clock.Store(&leaderClock{now, boot})
		n.noteBounded(applied)
	}
	return now
}

// noteBounded tells that a clock was not believed.
func (n *Node) noteBounded(applied int64) {
	n.log.Warn("a clock is more than 400 days ahead of cluster time; cluster time goes on from where it was",
		"cluster_time", time.Unix(0, applied).UTC())
	n.boundedBases.Add(1)
}

// errNoMajority: too few voters told their clocks.
var errNoMajority = errors.New("no majority of the voters answered for the time")

// electClock finds the base of a new leader's clock, after its barrier:
//
//  1. by its own newest receipt;
//  2. without one (restarted on a rebooted machine): by the largest of the
//     voters' receipts;
//  3. if nobody has one (all machines were rebooted): the lowest wall clock of a
//     majority.
//
// It is never below the applied time, and at most maxLead above it.
func (n *Node) electClock(ctx context.Context) (*leaderClock, error) {
	applied := n.fsm.Time()
	boot := n.clock.Boot()
	base, ok := n.receipts.estimate(boot)
	switch {
	case ok:
	case applied == 0: // nothing was ever decided: the first leader's wall clock starts cluster time
		base = n.clock.Wall()
	default:
		said, err := n.hearVoters(ctx)
		if err != nil {
			return nil, err
		}
		boot = n.clock.Boot()
		base = baseOf(said)
	}
	base, bounded := boundBase(base, applied)
	if bounded {
		n.noteBounded(applied)
	}
	return &leaderClock{base, boot}, nil
}

// baseOf is the largest receipt of the testimonies or, without any, the lowest
// wall clock.
func baseOf(said []testimony) int64 {
	known := slices.DeleteFunc(slices.Clone(said), func(t testimony) bool { return !t.known })
	if len(known) > 0 {
		return slices.MaxFunc(known, func(a, b testimony) int { return cmp.Compare(a.at, b.at) }).at
	}
	return slices.MinFunc(said, func(a, b testimony) int { return cmp.Compare(a.wall, b.wall) }).wall
}

// boundBase keeps the base of a clock between the applied time and maxLead above
// it; too far above it counts as no time at all.
func boundBase(base, applied int64) (int64, bool) {
	if applied != 0 && base > applied && base-applied > int64(maxLead) {
		return applied, true
	}
	return max(base, applied), false
}

// hearVoters asks all voters for their receipts and wall clocks, this node among
// them. It waits for all for a heartbeat timeout, and needs a majority.
func (n *Node) hearVoters(ctx context.Context) ([]testimony, error) {
	var others []raft.Server
	voters := 0
	for _, s := range n.configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID != n.serverID() {
			others = append(others, s)
		}
	}
	answers := make(chan *testimony, len(others))
	for _, s := range others {
		go func() {
			b, o := n.peers.call(string(s.Address), kindReceipt, nil, n.cfg.Heartbeat)
			if t, err := decodeTestimony(b); o == fsm.Applied && err == nil {
				answers <- &t
				return
			}
			answers <- nil
		}()
	}
	said := []testimony{n.receipts.testify()}
	for range others {
		select {
		case t := <-answers:
			if t != nil {
				said = append(said, *t)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if len(said) < voters/2+1 {
		return nil, errNoMajority
	}
	return said, nil
}
