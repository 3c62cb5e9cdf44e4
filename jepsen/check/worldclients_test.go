package check

import (
	"fmt"
	"strconv"

	"limitd/jepsen/history"
	"limitd/trace"
)

// ask is a worker's next operation.
func (w *world) ask(worker, process int, gap int64) {
	if w.now > w.until {
		return
	}
	keys := []string{"hot:0", "hot:1", "budget:0"}
	k := keys[w.r.IntN(3)]
	if w.r.IntN(2) == 0 {
		k = "warm:" + strconv.Itoa(w.r.IntN(8))
	}
	o := &asked{worker: worker, process: process, node: w.nodes[w.r.IntN(3)], key: k, op: "take"}
	if w.r.IntN(5) < 2 {
		w.send(o, gap)
		return
	}
	w.tag++
	l := w.limits[k]
	cmd := []string{"CL.THROTTLE", k, fmt.Sprint(l[0]), fmt.Sprint(l[1]), fmt.Sprint(l[2])}
	f := "take"
	switch n := w.r.IntN(100); {
	case n < 74:
		o.cost = 1 + w.r.Int64N(3)
		if w.r.IntN(8) == 0 {
			o.cost = 1 + w.r.Int64N(l[0]+2)
		}
	case n < 86:
		f = "peek"
	case n < 93:
		f, o.cost = "refund", -1-w.r.Int64N(2)
	case n < 95 && k != "budget:0":
		f, o.op, cmd = "reset", "reset", []string{"DEL", k}
	case n < 97:
		f, o.op, cmd = "exists", "exists", []string{"EXISTS", k}
	case n < 98:
		f, o.op, cmd = "ttl", "ttl", []string{"PTTL", k}
	default:
		f, o.op, cmd = "list", "list", []string{"RL.LIST", k}
	}
	if o.op == "take" {
		cmd = append(cmd, fmt.Sprint(o.cost))
	}
	o.call = trace.Call{Op: o.op, Key: k}
	if o.op == "take" {
		o.call.Algorithm, o.call.Interval, o.call.Burst, o.call.Cost = 1, l[2]*1e9/l[1], l[0]+1, o.cost
	}
	w.invoke(o, f, cmd, gap)
}

// send sends a call of a key with limits.
func (w *world) send(o *asked, gap int64) {
	w.tag++
	f, cmd := w.limited(o)
	w.invoke(o, f, cmd, gap)
}

func (w *world) invoke(o *asked, f string, cmd []string, gap int64) {
	o.call.Tag = w.tag
	o.event = history.Event{Type: history.Invoke, Process: o.process, Time: w.now, F: f, Tag: w.tag, Node: o.node.id, Key: o.key, Cmd: cmd}
	w.events = append(w.events, o.event)
	w.after(w.between(ms/20, ms/4), func() {
		if !o.node.up {
			w.end(o, history.Fail, "connection refused")
			return
		}
		w.arrive(o)
	})
	w.after(3000*ms, func() { w.end(o, history.Info, "timeout") })
	w.pace(o, gap)
}

// pace lets the worker go on when the operation has ended.
func (w *world) pace(o *asked, gap int64) {
	due := w.now + w.between(gap/2, gap*3/2)
	var wait func()
	wait = func() {
		if !o.over {
			w.after(ms/2, wait)
			return
		}
		process := o.process
		if o.event.Type == history.Info {
			process += 8
		}
		if w.repeatIt(o, process, gap) {
			return
		}
		w.after(max(0, due-w.now), func() { w.ask(o.worker, process, gap) })
	}
	w.after(ms/2, wait)
}

// end completes an operation.
func (w *world) end(o *asked, t history.Type, says string) {
	if o.over {
		return
	}
	o.over = true
	o.event.Type = t
	e := o.event
	e.Time, e.Error, e.Cmd = w.now, says, nil
	if t == history.OK {
		c := o.call
		e.Error = ""
		switch {
		case c.Status == "err":
			e.Type, e.Error = history.Fail, "ERR ID was used for another call"
		case o.op == "take" && c.Limit != "" || o.op == "takeall":
			e.Reply = w.replyOf(&c, o.at)
		case o.op == "take":
			limited, retry := int64(0), int64(-1)
			if !c.Allowed {
				limited = 1
				if c.Retry >= 0 {
					retry = (c.Retry + 1e9 - 1) / 1e9
				}
			}
			e.Reply = []any{limited, c.Burst, c.Remaining, retry, (c.Reset + 1e9 - 1) / 1e9}
		case o.op == "list":
			e.Reply = w.lists[c.Tag]
		case o.op == "ttl":
			n := c.N
			if n > 0 {
				n = (n + 1e6 - 1) / 1e6
			}
			e.Reply = n
		default:
			e.Reply = c.N
		}
	}
	w.events = append(w.events, e)
}
