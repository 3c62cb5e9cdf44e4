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
	var room [stateRoom]byte
	local := uint64(0)
	i := 0
	for ; i < len(calls); i++ {
		c := &calls[i]
		if c.Op != Take {
			if !leading || c.frees() {
				break
			}
			l.read(c, now)
			continue
		}
		if c.Cost < 0 || (c.Cost == 0 && !leading) {
			break
		}
		c.hash = tab.Hash(c.NS, c.Key)
		state, expiry, found := tab.Get(c.hash, c.NS, c.Key, c.Limit.Ident(), room[:0])
		if !found || expiry <= now {
			state = nil
		}
		v, _ := c.Limit.Decide(state, now, 0, c.Cost, chunk.next[:0])
		if v.Allowed && c.Cost > 0 {
			break
		}
		if !leading && v.RetryAfter != algo.Never && v.RetryAfter < followerMargin {
			break
		}
		c.Verdict = v
		if !v.Allowed {
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
