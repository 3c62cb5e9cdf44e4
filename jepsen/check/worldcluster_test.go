package check

import (
	"fmt"
	"hash/fnv"

	"limitd/jepsen/history"
	"limitd/trace"
)

// elect makes a node the leader.
func (w *world) elect(n *simNode) {
	w.after(w.between(350*ms, 550*ms), func() {
		if !n.up {
			w.elect(w.nodes[w.r.IntN(3)])
			return
		}
		w.leader, w.term, w.busy, w.flight = n, w.term+1, false, nil
		w.catchUp(n)
		w.epoch++
		w.index++ // its no-op
		if w.term > 1 {
			w.offset -= w.between(0, 3*ms)
		} else {
			w.commit(trace.Row{Term: 1, At: w.clusterTime(), Digest: w.digest(), Effects: []trace.Effect{{Op: "setcluster", State: "0102"}}}, false)
		}
		w.decideSoon()
	})
}

func (w *world) digest() string { return trace.Hash(w.r.Uint64()) }

// commit puts an entry into the log; the leader applies it now, the others soon.
func (w *world) commit(r trace.Row, void bool) uint64 {
	w.index++
	r.Kind, r.Index, r.Outcome = trace.Applied, w.index, "applied"
	if void {
		r.Outcome = "void"
	} else {
		r.Base = w.last
		w.last, w.t = w.index, max(w.t, r.At)
		h := fnv.New64a()
		fmt.Fprint(h, w.chain, w.index, r.Digest)
		w.chain = trace.Hash(h.Sum64())
	}
	r.Last, r.T, r.Chain = w.last, w.t, w.chain
	w.log = append(w.log, logged{r, w.index})
	for _, n := range w.nodes {
		n.receipt = [2]int64{r.At, w.now}
		if n == w.leader {
			w.catchUp(n)
		} else {
			slow := 25 * ms
			if w.bug == "no-fence" {
				slow = 290 * ms
			}
			w.after(w.between(ms/10, slow), func() { w.catchUp(n) })
		}
	}
	return w.index
}

// catchUp lets a node apply what is in the log.
func (w *world) catchUp(n *simNode) {
	if !n.up || (w.bug == "out-of-touch" || w.bug == "takeall-out-of-touch") && n == w.nodes[2] && n != w.leader && w.now > 3000*ms && w.now < 9000*ms {
		return
	}
	for ; n.next < len(w.log); n.next++ {
		x := w.log[n.next]
		w.write(n, x.row)
		n.applied = x.where
		if x.row.Outcome == "applied" {
			for _, f := range x.row.Effects {
				n.apply(f)
			}
		}
	}
	n.heard = w.now
}

// contact is the leader's news, now and then.
func (w *world) contact(n *simNode) {
	if w.now > w.until+2000*ms {
		return
	}
	if w.leader != nil && w.bug != "no-fence" {
		w.catchUp(n)
	}
	w.after(w.between(50*ms, 100*ms), func() { w.contact(n) })
}

func (w *world) tick() {
	if w.now > w.until {
		return
	}
	if w.leader != nil && !w.busy {
		w.commit(trace.Row{Term: w.term, At: w.clusterTime(), Digest: w.digest()}, false)
	}
	w.after(w.between(700*ms, 900*ms), w.tick)
}

// trouble kills a node now and then, mostly the leader, and starts it again.
func (w *world) trouble() {
	if w.now > w.until-2500*ms {
		return
	}
	n := w.nodes[w.r.IntN(3)]
	if w.leader != nil && w.r.IntN(3) > 0 {
		n = w.leader
	}
	if w.bug == "ack-first" || w.bug == "doubt-refused" { // bugs of a leader that dies with a proposal in flight
		if w.flight == nil || !w.busy || w.leader == nil {
			w.after(ms/2, w.trouble)
			return
		}
		n = w.leader
	}
	if n.up {
		n.up = false
		w.note()
		if n == w.leader {
			w.leader = nil
			if w.flight != nil {
				w.flight(w.r.IntN(2) == 0)
			}
			for _, o := range w.waiting {
				w.end(o, history.Info, "connection reset")
			}
			w.waiting = nil
			w.elect(w.nodes[w.r.IntN(3)])
		}
		w.after(w.between(200*ms, 600*ms), func() { w.restart(n) })
	}
	w.after(w.between(1800*ms, 3000*ms), w.trouble)
}

// restart brings a node back: from a snapshot, and the log behind it.
func (w *world) restart(n *simNode) {
	n.up, n.table, n.records, n.applied, n.fence = true, map[string]int64{}, records{}, 0, 0
	w.note()
	w.write(n, trace.Row{Kind: trace.Start, PID: 9})
	from := 0
	if n.next > 0 {
		from = w.r.IntN(n.next)
	}
	n.next = 0
	if from > 0 {
		for n.next < from {
			x := w.log[n.next]
			n.next++
			n.applied = x.where
			for _, f := range x.row.Effects {
				if x.row.Outcome != "applied" {
					break
				}
				n.apply(f)
			}
		}
		x := w.log[from-1].row
		w.write(n, trace.Row{Kind: trace.Restored, Index: x.Index, Last: x.Last, T: x.T, Chain: x.Chain, ClusterID: "0102"})
	}
	n.heard = 0
	w.after(w.between(5*ms, 30*ms), func() { w.catchUp(n) })
}
