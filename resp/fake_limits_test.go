package resp

import (
	"bytes"
	"slices"
	"strings"

	"limitd/algo"
	"limitd/limiter"
)

// The fake's records under limit expressions, by namespace, key and identity.

func recordKey(ns uint8, key, ident []byte) string {
	return string(rune(ns)) + string(key) + "\x00" + string(ident)
}

func (l *fakeLimiter) Parse(expr []byte) (algo.Limit, error) { return l.exprs.Parse(expr) }

// charge decides; it keeps what changes unless it only asks.
func (l *fakeLimiter) charge(ns uint8, key []byte, limit algo.Limit, cost int64, asks bool) algo.Verdict {
	name := recordKey(ns, key, limit.Ident())
	r := l.limits[name]
	if r.expiry <= l.now {
		r.state = nil
	}
	v, e := limit.Decide(r.state, l.now, 0, cost, nil)
	switch {
	case asks && v.Allowed:
		none, _ := limit.Decide(r.state, l.now, 0, 0, nil)
		v.Remaining, v.ResetAfter = none.Remaining, none.ResetAfter
	case e.Op == algo.Splice:
		kept := bytes.Clone(r.state[e.Drop : len(r.state)-e.Cut])
		l.limits[name] = record{append(kept, e.State...), e.Expiry}
	case e.Op == algo.Replace:
		l.limits[name] = record{bytes.Clone(e.State), e.Expiry}
	}
	return v
}

func (l *fakeLimiter) take(c *limiter.Call) {
	c.At = l.now
	c.Verdict = l.charge(c.NS, c.Key, c.Limit, c.Cost, c.Peek)
}

func (l *fakeLimiter) several(c *limiter.Call) {
	if c.Op == limiter.List {
		prefix := recordKey(c.NS, c.Key, nil)
		for name, r := range l.limits {
			if ident, ok := strings.CutPrefix(name, prefix); ok && r.expiry > l.now {
				p := limiter.Part{Ident: []byte(ident), N: algo.Used([]byte(ident), r.state, l.now, 0)}
				p.Verdict.ResetAfter = r.expiry - l.now
				c.Parts = append(c.Parts, p)
			}
		}
		slices.SortFunc(c.Parts, func(a, b limiter.Part) int { return bytes.Compare(a.Ident, b.Ident) })
		return
	}
	c.At, c.N, c.Verdict = l.now, -1, algo.Verdict{Allowed: true}
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.Verdict = l.charge(c.NS, p.Key, p.Limit, p.Cost, true); !p.Verdict.Allowed {
			c.Verdict.Allowed = false
			if longest := c.Verdict.RetryAfter; c.N < 0 || longest != algo.Never && (p.Verdict.RetryAfter > longest || p.Verdict.RetryAfter == algo.Never) {
				c.N, c.Verdict.RetryAfter = int64(i), p.Verdict.RetryAfter
			}
		}
	}
	for i := range c.Parts {
		if p := &c.Parts[i]; c.Verdict.Allowed && !c.Peek {
			p.Verdict = l.charge(c.NS, p.Key, p.Limit, p.Cost, false)
		}
	}
}

// forget says whether a key holds such records, and removes them if it is to.
func (l *fakeLimiter) forget(ns uint8, key []byte, remove bool) (held bool) {
	for name, r := range l.limits {
		if strings.HasPrefix(name, recordKey(ns, key, nil)) {
			held = held || r.expiry > l.now
			if remove {
				delete(l.limits, name)
			}
		}
	}
	return held
}
