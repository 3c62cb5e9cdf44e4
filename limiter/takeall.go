package limiter

import (
	"bytes"
	"fmt"

	"limitd/algo"
	"limitd/fsm"
	"limitd/mutant"
)

// CheckParts says whether the parts are of different records, as a TakeAll needs them.
// The error names the two that are not.
func CheckParts(parts []Part) error {
	for i := range parts {
		for j := range i {
			a, b := &parts[j], &parts[i]
			if bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Limit.Ident(), b.Limit.Ident()) {
				return fmt.Errorf("limits %d (%s) and %d (%s) are the same limit of the same key: those of one algorithm and period share their state", j+1, a.Limit, i+1, b.Limit)
			}
		}
	}
	return nil
}

// takeAll decides all parts on the same state and time. Only if all pass, and all
// effects can be kept, it changes anything.
func (r *round) takeAll(c *Call) {
	if len(c.ID) > 0 && r.repeats(c) {
		return
	}
	c.At = r.now
	for i := range c.Parts {
		p := &c.Parts[i]
		f := r.find(p.hash, c.NS, p.Key, p.Limit.Ident())
		if c.Peek {
			p.Verdict = peek(&p.Limit, f.state, r.now, r.offset, p.Cost, r.next[:0])
			continue
		}
		var e algo.Effect
		p.Verdict, e = r.run(&p.Limit, f.state, p.Cost)
		if e.Op == algo.None {
			continue
		}
		if c.Status = r.refuse(c, &f, &e, true); c.Status != OK {
			return
		}
	}
	c.conclude()
	var until [MaxParts]int64
	for i := range c.Parts {
		p := &c.Parts[i]
		switch f := r.find(p.hash, c.NS, p.Key, p.Limit.Ident()); {
		case !c.Verdict.Allowed && !(mutant.On("takeall-partial") && int64(i) < c.N): // what would be left had it been charged is not so
			p.uncharged(f.state, r.now, r.offset, r.next[:0])
		case c.Peek:
		default:
			if _, e := r.run(&p.Limit, f.state, p.Cost); e.Op != algo.None {
				r.keep(p.hash, c.NS, p.Key, p.Limit.Ident(), f, e)
				c.changes, until[i] = true, e.Expiry
			}
		}
	}
	if len(c.ID) > 0 && c.changes {
		r.remember(c, until[:])
	}
}

// conclude makes the verdict of a TakeAll of those of its parts.
func (c *Call) conclude() {
	c.Verdict, c.N = algo.Verdict{Allowed: true}, -1
	for i := range c.Parts {
		v := &c.Parts[i].Verdict
		if v.Allowed {
			continue
		}
		longer := v.RetryAfter > c.Verdict.RetryAfter || v.RetryAfter == algo.Never
		if c.N < 0 || longer && c.Verdict.RetryAfter != algo.Never {
			c.N, c.Verdict.RetryAfter = int64(i), v.RetryAfter
		}
		c.Verdict.Allowed = false
	}
}

// uncharged corrects the verdict of a part that passed in a call that did not.
func (p *Part) uncharged(state []byte, now, offset int64, buf []byte) {
	if p.Verdict.Allowed {
		p.Verdict = peek(&p.Limit, state, now, offset, p.Cost, buf)
		p.Verdict.Delay = 0
	}
}

// peek is the verdict of a call that is not charged: whether the cost would pass, and
// what is left now.
func peek(l *algo.Limit, state []byte, now, offset, cost int64, buf []byte) algo.Verdict {
	v, _ := l.Decide(state, now, offset, cost, buf)
	if v.Allowed && cost > 0 {
		asks, _ := l.Decide(state, now, offset, 0, buf)
		v.Remaining, v.ResetAfter = asks.Remaining, asks.ResetAfter
	}
	return v
}

// takeAllAlone answers a TakeAll from the applied state at now, if that may be done:
// one limit that denies is enough.
func (l *Limiter) takeAllAlone(c *Call, tab *fsm.Table, now, offset int64, leading bool, buf []byte) bool {
	decide := func(p *Part, asks bool) {
		p.Verdict = decideOn(tab, p.hash, c.NS, p.Key, &p.Limit, now, offset, p.Cost, asks, buf)
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		p.hash = tab.Hash(c.NS, p.Key)
		decide(p, c.Peek)
	}
	c.conclude()
	if c.Verdict.Allowed && !c.Peek || !answersAlone(&c.Verdict, leading, c.Peek) {
		return false
	}
	if !c.Verdict.Allowed {
		for i := range c.Parts {
			if p := &c.Parts[i]; p.Verdict.Allowed {
				decide(p, true)
				p.Verdict.Delay = 0
			}
		}
		c.conclude() // an entry that was applied meanwhile may have made more of them deny
	}
	c.At = now
	return true
}

// answersAlone says whether a node may give the verdict, which changes nothing, by
// its own. A follower's time is a lower bound: it leaves peeks to the leader, and
// denials that are over in a moment.
func answersAlone(v *algo.Verdict, leading, peeks bool) bool {
	if leading {
		return true
	}
	return !peeks && !v.Allowed && (v.RetryAfter == algo.Never || v.RetryAfter >= followerMargin)
}
