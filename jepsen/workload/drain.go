package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"limitd/jepsen/history"
)

// Processes of a drain: as many nodes, and for each as many calls in one write.
const (
	drainers       = 16
	drainPipelined = 64
)

// again is the pause before what a healed cluster did not do yet is tried again.
const again = 50 * time.Millisecond

// Drain is the end of a run, when all is healed and Run has returned. Before ctx ends,
//
//	every node must decide each operation on each kind of key,
//	every node must answer for every key that was ever asked of,
//	and all must come to the same chain hash at the same newest index.
//
// It says what did not. What it asks is in the history like all else. It may be called
// again, not at the same time.
func (w *Workload) Drain(ctx context.Context) error {
	nodes := w.c.Nodes()
	if len(nodes) == 0 || len(nodes) > drainers {
		return fmt.Errorf("a drain asks 1 to %d nodes, not %d", drainers, len(nodes))
	}
	w.mu.Lock()
	used := slices.Collect(maps.Values(w.used))
	w.mu.Unlock()
	slices.SortFunc(used, func(a, b Key) int { return cmp.Or(a.NS-b.NS, cmp.Compare(a.Name, b.Name)) })

	failed := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() {
			c := w.drains[i]
			defer c.drop()
			c.ns = 0
			failed[i] = cmp.Or(c.everyKind(ctx, node, i), c.everyKey(ctx, node, used))
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return w.sameState(ctx, nodes)
}

// everyKind asks a node for each operation on keys of each class.
func (c *client) everyKind(ctx context.Context, node string, i int) error {
	for j := range classes {
		k := Key{class: &classes[j], Name: fmt.Sprintf("%s:drain:%d", classes[j].name, i)}
		for o := range Operations {
			op := &Operations[o]
			if op.On != nil && !op.On(k) {
				continue
			}
			cmd := op.Make(rand.New(rand.NewPCG(c.w.c.Seed, 900+uint64(i))), k)
			if err := c.insist(ctx, node, []call{c.w.call(op, k, cmd)}); err != nil {
				return err
			}
		}
	}
	return c.everyLimit(ctx, node, i)
}

// everyLimit asks a node for each operation on keys of each algorithm.
func (c *client) everyLimit(ctx context.Context, node string, i int) error {
	r := rand.New(rand.NewPCG(c.w.c.Seed, 950+uint64(i)))
	own := keys{worker: (1 << 20) + i*crowd} // nobody's
	for j := range limited {
		k := own.ofClass(&limited[j], r)
		if !k.alone {
			k.more = []Key{own.ofClass(&limited[(j+1)%len(limited)], r)}
		}
		for o := range Limited {
			op := &Limited[o]
			if op.Make == nil || op.On != nil && !op.On(k) {
				continue
			}
			cmd := op.Make(r, k)
			if op.ID > 0 && !k.alone && cmd[len(cmd)-1] != "PEEK" { // what is not answered is asked again under it
				cmd = append(cmd, "ID", fmt.Sprintf("drain-%d-%d-%d", i, j, o))
			}
			if err := c.insist(ctx, node, []call{c.w.call(op, k, cmd)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// everyKey reads the state of all keys through a node.
func (c *client) everyKey(ctx context.Context, node string, used []Key) error {
	for len(used) > 0 {
		if c.ns != used[0].NS {
			c.drop()
			c.ns = used[0].NS
		}
		var calls []call
		for len(used) > 0 && len(calls) < drainPipelined && used[0].NS == c.ns {
			op, cmd := used[0].look()
			calls = append(calls, c.w.call(op, used[0], cmd))
			used = used[1:]
		}
		if err := c.insist(ctx, node, calls); err != nil {
			return err
		}
	}
	return nil
}

// insist asks those calls again that are not answered, until all are. Each time they
// are new calls, with tags of their own.
func (c *client) insist(ctx context.Context, node string, calls []call) error {
	for {
		said := c.ask(node, calls)
		var rest []call
		var last error
		for i, k := range calls {
			if said[i].Type != history.OK {
				rest = append(rest, c.w.call(k.op, k.key, k.cmd))
				last = fmt.Errorf("%s does not answer %q: %w", node, k.cmd, said[i].err)
			}
		}
		if last == nil || !sleep(ctx, time.Now().Add(again)) {
			return last
		}
		calls = rest
	}
}

// sameState waits until RL.HASH is the same on all nodes.
func (w *Workload) sameState(ctx context.Context, nodes []string) error {
	for {
		err := w.compareHashes(nodes)
		if err == nil || errors.Is(err, errDiverged) || !sleep(ctx, time.Now().Add(again)) {
			return err
		}
	}
}

// errDiverged is for ever: equal entries have made unequal states.
var errDiverged = errors.New("states have diverged")

// compareHashes compares what the nodes know of the chain hash. At an index that two of
// them name it must be equal; and the newest index must be the same, which an idle
// leader moves every few seconds.
func (w *Workload) compareHashes(nodes []string) error {
	hashes := map[int64]string{}
	owner := map[int64]string{}
	newest := make([]int64, len(nodes))
	for i, n := range nodes {
		reply, err := w.c.Dial.Ask(n, "RL.HASH")
		if err != nil {
			return fmt.Errorf("%s does not answer RL.HASH: %w", n, err)
		}
		points, _ := reply.([]any)
		for _, p := range points {
			pair, _ := p.([]any)
			if len(pair) != 2 {
				return fmt.Errorf("%s answers RL.HASH with %v, which is no pair of index and hash", n, p)
			}
			index, _ := pair[0].(int64)
			hash := fmt.Sprint(pair[1])
			if other, ok := hashes[index]; ok && other != hash {
				return fmt.Errorf("%w: at index %d, %s has the hash %s, %s has %s", errDiverged, index, owner[index], other, n, hash)
			}
			hashes[index], owner[index] = hash, n
			newest[i] = index
		}
	}
	if slices.Min(newest) == 0 || slices.Min(newest) != slices.Max(newest) {
		return fmt.Errorf("newest indexes differ: %v on %v", newest, nodes)
	}
	return nil
}
