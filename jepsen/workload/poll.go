package workload

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"limitd/jepsen/history"
)

// Dialer connects to a node as a client.
type Dialer func(node string, timeout time.Duration) (net.Conn, error)

// Ask sends one command to a node on a connection of its own, and waits for the
// reply as long as clients do.
func (d Dialer) Ask(node string, args ...string) (any, error) {
	return d.AskFor(patience, node, args...)
}

// AskFor is Ask with a patience of its own.
func (d Dialer) AskFor(patience time.Duration, node string, args ...string) (any, error) {
	nc, err := d(node, time.Second)
	if err != nil {
		return nil, err
	}
	c := newConn(nc)
	defer c.Close()
	return c.Do(patience, args...)
}

// Info is INFO of a node, field by field.
func (d Dialer) Info(node string) (map[string]string, error) {
	text, err := d.Ask(node, "INFO")
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(fmt.Sprint(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// Leader is the node that says it leads in the highest term, "" if none does.
func (d Dialer) Leader(nodes []string) string {
	var mu sync.Mutex
	var all sync.WaitGroup
	leader, highest := "", int64(-1)
	for _, n := range nodes {
		all.Go(func() {
			f, err := d.Info(n)
			term, _ := strconv.ParseInt(f["raft_term"], 10, 64)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && f["raft_role"] == "leader" && term > highest {
				leader, highest = n, term
			}
		})
	}
	all.Wait()
	return leader
}

// Sample asks the nodes now and then for their role, term and time, until ctx ends.
func Sample(ctx context.Context, d Dialer, nodes []string, r *history.Recorder) {
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(200 * time.Millisecond):
				}
				f, err := d.Info(n)
				if err != nil {
					continue
				}
				s := history.Sample{Node: n, Role: f["raft_role"]}
				s.Term, _ = strconv.ParseUint(f["raft_term"], 10, 64)
				before := r.Now()
				if t, err := d.Ask(n, "RL.TIME"); err == nil {
					if list, ok := t.([]any); ok && len(list) > 0 {
						ms, _ := list[0].(int64)
						s.ClusterNS = ms*1e6 - (before+r.Now())/2
					}
				}
				r.Sample(s)
			}
		})
	}
	all.Wait()
}
