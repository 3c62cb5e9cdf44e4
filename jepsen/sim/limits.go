package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"limitd/algo"
	"limitd/limiter"
)

// idTTL is for how long the nodes remember an ID: not as long as a run.
const idTTL = 15 * time.Second

// limited are the keys with limit expressions, of all algorithms, some with several.
var limited = func() (all []key) {
	for _, k := range [][2]string{
		{"many", "6/4s,burst=4"}, {"many", "log:5/5s"}, {"bucket", "token:5/10s"}, {"queue", "leaky:1/1s,queue=3"},
		{"window", "fixed:6/10s"}, {"window", "sliding:9/10s"}, {"pair", "sliding:4/5s"}, {"list", "log:7/20s"},
		{"date", "fixed:9/day"}, {"date", "fixed:14/week,start=sun"}, {"date", "log:4/3s"},
	} {
		l, err := algo.Parse(k[1])
		if err != nil {
			panic(err)
		}
		all = append(all, key{k[0], l})
	}
	return all
}()

// named are calls that had an ID, of one client.
type named struct {
	calls  []limiter.Call
	serial int
}

// drawLimited makes a call under limit expressions.
func (c *clients) drawLimited(rng *rand.Rand, chunk *limiter.Chunk, call *limiter.Call, n *named) {
	k := limited[rng.IntN(len(limited))]
	tag := c.tags.Add(1)
	*call = limiter.Call{Op: limiter.Take, Key: []byte(k.name), Limit: k.limit, Cost: 1 + rng.Int64N(2), Tag: tag}
	var old *limiter.Call
	if len(n.calls) > 0 {
		old = &n.calls[rng.IntN(len(n.calls))]
	}
	switch x := rng.IntN(100); {
	case x < 40:
	case x < 46:
		call.Peek = true
	case x < 52:
		call.Cost = -1 - rng.Int64N(2)
		return
	case x < 62 && old != nil: // once more, whatever it was told
		repeatOf(old, chunk, call, tag)
		return
	case x < 70 && old != nil: // give it back
		i := rng.IntN(max(1, len(old.Parts)))
		call.Key, call.Limit = old.Key, old.Limit
		if len(old.Parts) > 0 {
			call.Key, call.Limit = old.Parts[i].Key, old.Parts[i].Limit
		}
		call.Cost, call.ID = -1-rng.Int64N(2), old.ID
		return
	case x < 72 && old != nil: // another call under its ID
		call.ID, call.Cost = old.ID, 3
		return
	case x < 74:
		*call = limiter.Call{Op: limiter.Reset, Key: call.Key, Tag: tag}
		return
	case x < 78:
		*call = limiter.Call{Op: limiter.List, Key: call.Key, Tag: tag}
		return
	default:
		call.Op, call.Limit = limiter.TakeAll, algo.Limit{}
		parts := rng.Perm(len(limited))[:2+rng.IntN(3)]
		call.Parts = chunk.NewParts(len(parts))
		for i, j := range parts {
			call.Parts[i] = limiter.Part{Key: []byte(limited[j].name), Limit: limited[j].limit, Cost: 1 + rng.Int64N(2)}
		}
		call.Key, call.Cost = call.Parts[0].Key, 0
		call.Peek = rng.IntN(10) == 0
	}
	if !call.Peek && rng.IntN(3) == 0 {
		n.serial++
		call.ID = fmt.Appendf(nil, "%d-%d", tag, n.serial)
		kept := *call
		kept.Parts = append([]limiter.Part(nil), call.Parts...)
		if n.calls = append(n.calls, kept); len(n.calls) > 12 {
			n.calls = n.calls[1:]
		}
	}
}

// repeatOf makes the same call once more.
func repeatOf(old *limiter.Call, chunk *limiter.Chunk, call *limiter.Call, tag uint64) {
	*call = limiter.Call{Op: old.Op, NS: old.NS, Key: old.Key, Limit: old.Limit, Cost: old.Cost, ID: old.ID, Tag: tag}
	if len(old.Parts) > 0 {
		call.Parts = chunk.NewParts(len(old.Parts))
		for i, p := range old.Parts {
			call.Parts[i] = limiter.Part{Key: p.Key, Limit: p.Limit, Cost: p.Cost}
		}
	}
}

// again asks other nodes for the calls that have an ID and were not answered, a few times.
func (c *clients) again(asked *process, chunk *limiter.Chunk) {
	first := 0
	for i, m := range c.w.machines {
		if m == asked.m {
			first = i
		}
	}
	for i := range chunk.Calls {
		old := chunk.Calls[i]
		for n := 1; n <= 3 && len(old.ID) > 0 && old.Cost >= 0 && open(old.Status); n++ {
			select {
			case <-c.done:
				return
			case <-time.After(time.Duration(n) * 100 * time.Millisecond):
			}
			p := c.w.machines[(first+n)%len(c.w.machines)].up()
			if p == nil || p.frozen() {
				continue
			}
			var next limiter.Chunk
			repeatOf(&old, &next, next.Add(), c.tags.Add(1))
			c.w.count("asked again under an ID", 1)
			c.ask(p, &next)
			old = next.Calls[0]
		}
	}
}

// open says that a call was not answered.
func open(s limiter.Status) bool {
	return s == limiter.InDoubt || s == limiter.TryAgain || s == limiter.ClusterDown
}
