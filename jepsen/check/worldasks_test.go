package check

import (
	"fmt"
	"slices"
	"strconv"

	"limitd/jepsen/history"
	"limitd/trace"
)

// limited makes an operation of a key with limits.
func (w *world) limited(o *asked) (f string, cmd []string) {
	keys := []string{"lim:c", "lim:f", "lim:g", "lim:l", "lim:q", "lim:s", "lim:t"}
	k := keys[w.r.IntN(len(keys))]
	exprs := worldLimits[k]
	expr := exprs[w.r.IntN(len(exprs))]
	o.key, o.op = k, "take"
	set := func(cost int64) {
		l := parsed(expr)
		o.cost = cost
		o.call = trace.Call{Op: "take", Key: k, Algorithm: uint8(l.Algorithm), Interval: l.Interval, Burst: l.Burst, Limit: expr, Cost: cost}
	}
	if o.repeat == nil && len(w.again) > 0 && w.r.IntN(12) == 0 { // somebody has lost the answer
		o.repeat = w.again[w.r.IntN(len(w.again))]
	}
	if x := o.repeat; x != nil {
		o.key, o.op, o.cost, o.call = x.key, x.op, x.cost, x.call
		return x.f, x.cmd
	}
	id := ""
	if w.r.IntN(3) == 0 {
		id = "id-" + strconv.FormatUint(w.tag, 10)
	}
	switch n := w.r.IntN(100); {
	case n < 45:
		set(1 + w.r.Int64N(3))
		f, cmd = "take", []string{"RL.TAKE", k, expr, "COST", fmt.Sprint(o.cost)}
	case n < 53:
		set(w.r.Int64N(4))
		o.call.Peek, id = true, ""
		f, cmd = "peek", []string{"RL.PEEK", k, expr, "COST", fmt.Sprint(o.cost)}
	case n < 60:
		set(-1 - w.r.Int64N(3))
		id = ""
		f, cmd = "refund", []string{"RL.REFUND", k, expr, fmt.Sprint(-o.cost)}
	case n < 68 && len(w.again) > 0:
		x := w.again[w.r.IntN(len(w.again))]
		if x.op == "takeall" {
			p := x.call.Parts[w.r.IntN(len(x.call.Parts))]
			k, expr = p.Key, p.Limit
		} else {
			k, expr = x.key, x.call.Limit
		}
		o.key, id = k, x.call.ID
		set(-1 - w.r.Int64N(3))
		f, cmd = "refund-id", []string{"RL.REFUND", k, expr, fmt.Sprint(-o.cost)}
	case n < 70 && len(w.again) > 0: // another call under an ID
		set(1)
		id = w.again[w.r.IntN(len(w.again))].call.ID
		f, cmd = "take", []string{"RL.TAKE", k, expr}
	case n < 72:
		o.op, o.call = "reset", trace.Call{Op: "reset", Key: k}
		return "reset", []string{"DEL", k}
	case n < 75:
		o.op, o.call = "ttl", trace.Call{Op: "ttl", Key: k}
		return "ttl", []string{"PTTL", k}
	case n < 79:
		o.op, o.call = "list", trace.Call{Op: "list", Key: k}
		return "list", []string{"RL.LIST", k}
	default:
		o.op = "takeall"
		w.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		count := 2 + w.r.IntN(3)
		o.key = keys[0]
		o.call = trace.Call{Op: "takeall", Key: keys[0]}
		cmd = []string{"RL.TAKEALL", fmt.Sprint(count)}
		costs := []string{"COSTS"}
		for _, k := range keys[:count] {
			x := worldLimits[k]
			p := trace.Part{Key: k, Limit: x[w.r.IntN(len(x))], Cost: 1 + w.r.Int64N(2)}
			o.call.Parts = append(o.call.Parts, p)
			cmd, costs = append(cmd, p.Key, p.Limit), append(costs, fmt.Sprint(p.Cost))
		}
		cmd = append(cmd, costs...)
		if w.r.IntN(10) == 0 {
			o.call.Peek, id = true, ""
			cmd = append(cmd, "PEEK")
		}
		f = "takeall"
	}
	if id != "" {
		o.call.ID, cmd = id, append(cmd, "ID", id)
		if o.cost >= 0 {
			x := &named{o.key, o.op, f, cmd, o.cost, o.call}
			o.named = x
			if w.again = append(w.again, x); len(w.again) > 20 {
				w.again = w.again[1:]
			}
		}
	}
	return f, cmd
}

// named is a call with an ID, to be repeated.
type named struct {
	key, op, f string
	cmd        []string
	cost       int64
	call       trace.Call
}

// replyOf is what a client is told of a call under limits.
func (w *world) replyOf(c *trace.Call, at int64) any {
	if made, ok := w.made[c.Tag]; ok {
		at = made
	}
	ms := func(ns int64) int64 {
		if ns < 0 {
			return -1
		}
		return (ns + 1e6 - 1) / 1e6
	}
	allowed := int64(0)
	if c.Allowed {
		allowed = 1
	}
	if c.Op == "take" {
		return []any{allowed, c.Burst, c.Remaining, ms(c.Retry), ms(c.Reset), ms(c.Delay), ms(at)}
	}
	all := []any{allowed, c.N, ms(c.Retry), ms(at)}
	for _, p := range c.Parts {
		all = append(all, []any{parsed(p.Limit).Burst, p.Remaining, ms(p.Retry), ms(p.Reset), ms(p.Delay)})
	}
	return all
}

// repeatIt has a call whose answer did not come repeated under its ID at another node.
func (w *world) repeatIt(o *asked, process int, gap int64) bool {
	x := o.named
	if x == nil {
		x = o.repeat
	}
	if x == nil || o.event.Type == history.OK || o.tries > 3 || w.now > w.until {
		return false
	}
	next := &asked{worker: o.worker, process: process, node: w.nodes[(slices.Index(w.nodes, o.node)+1)%3], repeat: x, tries: o.tries + 1}
	w.after(w.between(10*ms, 100*ms), func() { w.send(next, gap) })
	return true
}
