package check

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"limitd/jepsen/history"
)

const (
	promptly    = int64(time.Second)             // how soon a healthy cluster answers
	graceLeast  = int64(3 * time.Second)         // after a change, before service is due
	silence     = int64(2 * time.Second)         // without any service is none
	silentCalls = 5                              // that many calls must have asked for it
	bounded     = int64(2500 * time.Millisecond) // request_timeout and leader_wait, and room for a busy machine
	noticed     = int64(250 * time.Millisecond)  // how late a line of health.jsonl may be
)

// checkAvailability, where a healthy majority is one of voters that run, have their
// disks and hear each other, all of them each other, and nobody else:
//
//	after max(3 s, 10 heartbeat timeouts) of the same healthy majority, 99 of 100 calls to its nodes are answered ok within 1 s, until it changes
//	and there are no 2 s in which five or more calls are made and none is
//	a call to a node that runs and is reached is answered within 2.5 s, majority or not
//	after the last fault was healed all came back (run.json, unsettled)
//
// It trusts health.jsonl, what the lab did to nodes and links. Rings, bridges and other
// shapes in which a majority is not a clique of its own are not judged.
func checkAvailability(e *evidence, r *result) {
	for _, says := range e.run.Unsettled {
		r.bad(Example{Says: "after all was healed: " + says})
	}
	if len(e.health) == 0 {
		r.open(Example{Says: "there is no health.jsonl, so nothing says when service was due"})
		return
	}
	e.judgeService(r)
	e.judgeBounded(r)
}

// due is a time in which nodes owe service.
type due struct {
	from, to int64
	nodes    []string
}

// dues are the times of healthy majorities, less the grace.
func (e *evidence) dues() (all []due) {
	grace := max(graceLeast, 10*e.run.HeartbeatNS)
	var open due
	end := func(t int64) {
		if open.nodes != nil && t-noticed-promptly > open.from+grace {
			all = append(all, due{open.from + grace, t - noticed - promptly, open.nodes})
		}
	}
	for _, h := range e.health {
		if nodes := majority(h); !slices.Equal(nodes, open.nodes) {
			end(h.Time)
			open = due{from: h.Time, nodes: nodes}
		}
	}
	end(e.lastTime())
	return all
}

func (e *evidence) lastTime() int64 {
	last := int64(0)
	for _, o := range e.ops {
		last = max(last, o.from())
		if o.done != nil {
			last = max(last, o.done.Time)
		}
	}
	return last
}

// majority is the healthy majority, sorted; nil: there is none.
func majority(h history.Health) []string {
	voters := 0
	var fit []string
	for id, n := range h.Nodes {
		if n.Voter {
			voters++
			if n.Up && n.Disk {
				fit = append(fit, id)
			}
		}
	}
	slices.Sort(fit)
	linked := func(a, b string) bool {
		return slices.Contains(h.Nodes[a].Peers, b) && slices.Contains(h.Nodes[b].Peers, a)
	}
	for _, first := range fit {
		var clique []string // first, and all that it hears
		for _, b := range fit {
			if b == first || linked(first, b) {
				clique = append(clique, b)
			}
		}
		if len(clique) <= voters/2 {
			continue
		}
		for _, a := range clique {
			for _, b := range fit {
				if a != b && linked(a, b) != slices.Contains(clique, b) {
					return nil
				}
			}
		}
		return clique
	}
	return nil
}

func (e *evidence) judgeService(r *result) {
	asked, served := int64(0), int64(0)
	var late []*op
	for _, d := range e.dues() {
		var calls []*op
		for _, o := range e.ops {
			if o.from() >= d.from && o.from() <= d.to && slices.Contains(d.nodes, o.invoke.Node) && e.reached(o.invoke.Node, o.from(), o.from()+promptly, false) {
				calls = append(calls, o)
			}
		}
		var silent []*op
		for _, o := range calls {
			asked++
			if o.served() && o.to()-o.from() <= promptly {
				served++
				silent = nil
				continue
			}
			late = append(late, o)
			silent = append(silent, o)
			if n := len(silent); n >= silentCalls && o.from()-silent[0].from() >= silence {
				r.bad(Example{
					Says:   fmt.Sprintf("no service from %d to %d ns of the run, %d calls, though %s were a healthy majority from %d on; the last call: %s", silent[0].from(), o.from(), n, strings.Join(d.nodes, ", "), d.from, o),
					Node:   o.invoke.Node,
					Events: append(silent[0].events(), o.events()...),
				})
				silent = nil
			}
		}
	}
	r.Checked += asked
	r.figure("due", asked)
	r.figure("served", served)
	if served*100 < asked*99 && len(late) > 1 {
		x := Example{Says: fmt.Sprintf("of %d calls to a healthy majority %d were not answered ok within a second, more than 1 in 100; the first: %s", asked, len(late), late[0])}
		for _, o := range late[:min(len(late), examplesKept)] {
			x.Events = append(x.Events, o.events()...)
		}
		r.bad(x)
	}
}

// served says that the operation was answered. A refusal of an ID is an answer, and so is one
// of a command that not all nodes know yet.
func (o *op) served() bool {
	ofLimits := o.verb == take || o.verb == takeAll
	return o.typ == history.OK || o.typ == history.Fail && ofLimits && strings.HasPrefix(o.done.Error, "ERR ")
}

// reached says that the node ran and clients reached it, all the time from one moment
// to another; still: and nothing about it changed.
func (e *evidence) reached(node string, from, to int64, still bool) bool {
	i := sort.Search(len(e.health), func(i int) bool { return e.health[i].Time > from-noticed }) - 1
	if i < 0 {
		return false
	}
	was := e.health[i].Nodes[node]
	for ; i < len(e.health) && e.health[i].Time <= to+noticed; i++ {
		now := e.health[i].Nodes[node]
		if !now.Up || !now.Client || still && now.Disk != was.Disk {
			return false
		}
	}
	return true
}

func (e *evidence) judgeBounded(r *result) {
	worst := int64(0)
	end := e.lastTime()
	for _, o := range e.ops {
		until := o.from() + bounded
		if until > end || !e.reached(o.invoke.Node, o.from(), until, true) {
			continue
		}
		r.Checked++
		took := int64(math.MaxInt64)
		if o.done != nil {
			took = o.done.Time - o.from()
		}
		worst = max(worst, took)
		if took > bounded {
			r.bad(Example{Says: fmt.Sprintf("%s; not answered within %d ns, though the node ran and was reached", o, bounded), Node: o.invoke.Node, Key: o.keyName(), Events: o.events()})
		}
	}
	r.figure("slowest_answer_ns", worst)
}
