package check

import (
	"math"

	"limitd/jepsen/history"
)

// span is a number that is known to lie between two others.
type span struct{ lo, hi int64 }

var anywhere = span{math.MinInt64 / 4, math.MaxInt64 / 4}

func (s span) known() bool { return s.lo > anywhere.lo && s.hi < anywhere.hi }

// narrow takes in that the number lies between lo and hi too.
func (s *span) narrow(lo, hi int64) { s.lo, s.hi = max(s.lo, lo), min(s.hi, hi) }

// clock relates the three times of a run: the harness's, the boot clocks of the nodes,
// and cluster time. Nothing is assumed but that clocks of hardware run alike; the
// offsets are found from what must have happened before what.
type clock struct {
	boot    map[string]span // per node: its boot clock less the harness's time
	cluster map[uint64]span // per term: cluster time less the boot clock of the leader
	leader  map[uint64]string
	began   map[uint64]int64 // per term: boot clock of its leader at its first round
}

// newClock: a row about an operation that was answered was written between its
// invocation and its completion. A round read the time of its leader after the
// round before it had ended, and before its own row was written.
func newClock(e *evidence) clock {
	c := clock{map[string]span{}, map[uint64]span{}, map[uint64]string{}, map[uint64]int64{}}
	for _, d := range e.decisions {
		if d.op == nil || d.op.typ != history.OK {
			continue
		}
		s, ok := c.boot[d.row.Node]
		if !ok {
			s = anywhere
		}
		s.narrow(d.row.Boot-d.op.to(), d.row.Boot-d.op.from())
		c.boot[d.row.Node] = s
	}
	for _, r := range e.rounds {
		s, ok := c.cluster[r.row.Term]
		if !ok {
			s = anywhere
			c.leader[r.row.Term], c.began[r.row.Term] = r.row.Node, r.row.Boot
		}
		s.narrow(r.row.At-r.row.Boot, anywhere.hi)
		if r.before != nil {
			s.narrow(anywhere.lo, r.row.At-r.before.Boot)
		}
		c.cluster[r.row.Term] = s
	}
	return c
}

// harness is when a row was written, in the harness's time.
func (c *clock) harness(r *row) (span, bool) {
	s, ok := c.boot[r.Node]
	if !ok || !s.known() || s.lo > s.hi {
		return span{}, false
	}
	return span{r.Boot - s.hi, r.Boot - s.lo}, true
}
