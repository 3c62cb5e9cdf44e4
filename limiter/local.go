package limiter

import (
	"time"

	"limitd/algo"
	"limitd/fsm"
)

// followerMargin: a follower's time is a lower bound, so a wait shorter than
// this is left to the leader, who knows it exactly.
const followerMargin = int64(20 * time.Millisecond)

// stateRoom is the room for a state, and for a decision's new state, that needs
// no allocation.
const stateRoom = 32

// answerAlone answers the calls at the front that need no agreement and returns
// how many that were. Denials stay true whatever is in flight, since that can
// only consume; they are given only in touch with the majority. The leader
// answers reads that way too.
func (l *Limiter) answerAlone(chunk *Chunk) int {
	calls := chunk.Calls
	now, ok := l.r.Touch()
	if !ok {
		return 0
	}
	leading := l.r.Leading()
	index := l.f.Applied()
	if !leading && l.fence.Load() > index {
		return 0 // this node freed capacity and has not applied that yet
	}
	tab := l.f.Table()
	offset := int64(0)
	if chunk.dated() {
		offset = l.f.State().Offset
	}
	var room [stateRoom]byte
	local := uint64(0)
	i := 0
loop:
	for ; i < len(calls); i++ {
		c := &calls[i]
		if len(c.ID) > 0 {
			break // whether it was charged before is known for certain in a round
		}
		switch c.Op {
		case Take:
			if c.Cost < 0 || (c.Cost == 0 || c.Peek) && !leading {
				break loop
			}
			c.hash = tab.Hash(c.NS, c.Key)
			var v algo.Verdict
			if c.Peek || c.Limit.Algorithm == algo.Log {
				v = decideOn(tab, c.hash, c.NS, c.Key, &c.Limit, now, offset, c.Cost, c.Peek, chunk.next[:0])
			} else { // the same, written out: this is what a flood of denials does
				state, expiry, found := tab.Get(c.hash, c.NS, c.Key, c.Limit.Ident(), room[:0])
				if !found || expiry <= now {
					state = nil
				}
				v, _ = c.Limit.Decide(state, now, offset, c.Cost, chunk.next[:0])
			}
			if !c.Peek && (v.Allowed && c.Cost > 0 || !answersAlone(&v, leading, false)) {
				break loop
			}
			c.Verdict = v
			c.At = now
		case TakeAll:
			if !l.takeAllAlone(c, tab, now, offset, leading, chunk.next[:0]) {
				break loop
			}
		case List:
			if !leading {
				break loop
			}
			l.list(c, tab, now)
			continue
		default:
			if !leading || c.frees() {
				break loop
			}
			l.read(c, now)
			continue
		}
		if c.Traced {
			c.Origin = &Origin{Node: l.cfg.Node}
		}
		if !c.Verdict.Allowed {
			local++
		}
	}
	if local > 0 {
		l.stats.deniedLocal.Add(local)
	}
	if l.cfg.Trace != nil && i > 0 {
		l.traceLocal(calls[:i], now, index, l.f.Applied(), leading)
	}
	return i
}

// decideOn decides on the applied state. A log may be large, so it is read in place;
// to copy the others is less work.
func decideOn(tab *fsm.Table, h uint64, ns uint8, key []byte, limit *algo.Limit, now, offset, cost int64, asks bool, buf []byte) (v algo.Verdict) {
	if limit.Algorithm == algo.Log {
		read := func(state []byte, expiry int64) { v = verdictOn(limit, state, expiry, now, offset, cost, asks, buf) }
		if !tab.View(h, ns, key, limit.Ident(), read) {
			read(nil, 0)
		}
		return v
	}
	var room [stateRoom]byte
	state, expiry, ok := tab.Get(h, ns, key, limit.Ident(), room[:0])
	if !ok {
		state = nil
	}
	return verdictOn(limit, state, expiry, now, offset, cost, asks, buf)
}

func verdictOn(limit *algo.Limit, state []byte, expiry, now, offset, cost int64, asks bool, buf []byte) algo.Verdict {
	if expiry <= now {
		state = nil
	}
	if asks {
		return peek(limit, state, now, offset, cost, buf)
	}
	v, _ := limit.Decide(state, now, offset, cost, buf)
	return v
}

// dated says that a call of the chunk asks for a calendar window.
func (c *Chunk) dated() bool {
	for i := range c.Calls {
		call := &c.Calls[i]
		if call.Limit.Dated() {
			return true
		}
		for j := range call.Parts {
			if call.Parts[j].Limit.Dated() {
				return true
			}
		}
	}
	return false
}

// read answers Exists, Type and TTL from the applied state at now.
func (l *Limiter) read(c *Call, now int64) {
	c.N = 0
	longest := int64(0)
	c.keys(func(key []byte) {
		if e := l.expiry(c.NS, key); e > now {
			c.N++
			longest = max(longest, e-now)
		}
	})
	if c.Op == TTL {
		c.N = ttl(longest)
	}
}

// expiry is the latest expiry of a key's records, 0 if it has none.
func (l *Limiter) expiry(ns uint8, key []byte) int64 {
	tab := l.f.Table()
	latest := int64(0)
	tab.Records(tab.Hash(ns, key), ns, key, func(r fsm.Record) { latest = max(latest, r.Expiry) })
	return latest
}

func ttl(left int64) int64 {
	if left <= 0 {
		return NoKey
	}
	return left
}
