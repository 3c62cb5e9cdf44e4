package workload

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"limitd/jepsen/history"
)

// sampling is how often a node is asked of itself.
const sampling = 200 * time.Millisecond

// Watch asks the nodes that clients may ask now and then for their role, term and
// time, and writes that down, until ctx ends. Workers that follow the leader know of it
// from here.
func (w *Workload) Watch(ctx context.Context) {
	var all sync.WaitGroup
	watched := map[string]bool{}
	for next := time.Now(); sleep(ctx, next); next = time.Now().Add(sampling) {
		for _, n := range w.c.Nodes() {
			if !watched[n] {
				watched[n] = true
				all.Go(func() { w.watch(ctx, n) })
			}
		}
	}
	all.Wait()
}

// watch watches one node, while clients may ask it.
func (w *Workload) watch(ctx context.Context, node string) {
	var c *conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for next := time.Now(); sleep(ctx, next); next = time.Now().Add(sampling) {
		if !slices.Contains(w.c.Nodes(), node) {
			continue
		}
		if c == nil {
			nc, err := w.c.Dial(node, impatient)
			if err != nil {
				continue
			}
			c = newConn(nc)
		}
		s, err := sample(c, w.c.Recorder)
		if err != nil {
			c.Close()
			c = nil
			continue
		}
		s.Node = node
		w.c.Recorder.Sample(s)
		if s.Role == "leader" {
			w.leads(node, s.Term)
		}
	}
}

// sample asks a node for its role, term and cluster time. The time is that of the
// middle between question and answer.
func sample(c *conn, r *history.Recorder) (s history.Sample, err error) {
	text, err := c.do(impatient, "INFO", "raft")
	if err != nil {
		return s, err
	}
	f := infoFields(text)
	s.Role = f["raft_role"]
	if s.Term, err = strconv.ParseUint(f["raft_term"], 10, 64); err != nil {
		return s, err
	}
	before := r.Now()
	reply, err := c.do(impatient, "RL.TIME")
	if err != nil {
		return s, err
	}
	if list, _ := reply.([]any); len(list) > 0 {
		ms, _ := list[0].(int64)
		s.ClusterNS = ms*1e6 - (before+r.Now())/2
	}
	return s, nil
}
