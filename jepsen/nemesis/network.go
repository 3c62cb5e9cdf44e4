package nemesis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"limitd/jepsen/lab"
)

var network = []Nemesis{
	{"isolate-leader", "a deposed leader that still answers", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		return e.cut(ctx, "leader", func() []lab.Cut { return split([]string{e.leaderOr()}, e.others(e.leaderOr()), lab.AnyPort) })
	}},
	{"isolate-one", "a minority of one", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.some(1)[0]
		return e.cut(ctx, id, func() []lab.Cut { return split([]string{id}, e.others(id), lab.AnyPort) })
	}},
	{"halves", "majority and minority", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		all := e.some(9)
		n := len(all) / 2
		return e.cut(ctx, fmt.Sprint(all[:n]), func() []lab.Cut { return split(all[:n], all[n:], lab.AnyPort) })
	}},
	{"ring", "each node sees another majority", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		all := e.some(9)
		return e.cut(ctx, fmt.Sprint(all), func() []lab.Cut { return ring(all) })
	}},
	{"bridge", "one node alone sees both halves", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		all := e.some(9)
		n := len(all) / 2
		return e.cut(ctx, all[n], func() []lab.Cut { return split(all[:n], all[n+1:], lab.AnyPort) })
	}},
	{"deaf", "it sends and hears nothing", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim().ID()
		return e.cut(ctx, id, func() (cuts []lab.Cut) {
			for _, o := range e.others(id) {
				cuts = append(cuts, lab.Cut{From: o, To: id})
			}
			return cuts
		})
	}},
	{"mute", "it hears and nobody hears it", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim().ID()
		return e.cut(ctx, id, func() (cuts []lab.Cut) {
			for _, o := range e.others(id) {
				cuts = append(cuts, lab.Cut{From: id, To: o})
			}
			return cuts
		})
	}},
	{"peers-only", "clients still reach a stale leader", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim().ID()
		return e.cut(ctx, id, func() []lab.Cut { return split([]string{id}, e.others(id), lab.PeerPort) })
	}},
	{"clients-only", "replies that are lost", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim().ID()
		return e.cut(ctx, id, func() []lab.Cut { return []lab.Cut{{From: id, To: lab.Client, Port: lab.RESPPort}} })
	}},
	{"swizzle", "links that go one by one and come back in another order", "network", []lab.Ability{lab.Netns}, swizzle},
	{"sever", "connections that are reset in the middle of a frame", "network", []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		for range 3 + e.Rand.IntN(5) {
			pair := e.some(2)
			e.begin(pair, "connections are reset")
			if err := e.Lab.Network().Sever(pair[0], pair[1]); err != nil {
				return err
			}
			e.end(pair, "")
			if !e.wait(ctx, 100*time.Millisecond, time.Second) {
				break
			}
		}
		return nil
	}},
}

func (e *Env) leaderOr() string {
	if l := e.leader(); l != "" {
		return l
	}
	return e.some(1)[0]
}

func (e *Env) others(id string) []string {
	return slices.DeleteFunc(e.Members.List(), func(x string) bool { return x == id })
}

// cut cuts for 0.2 to 8 s: below and above an election.
func (e *Env) cut(ctx context.Context, detail string, cuts func() []lab.Cut) error {
	all := cuts()
	e.begin(targets(all), detail)
	if err := e.Lab.Network().Cut(all); err != nil {
		return err
	}
	e.wait(ctx, 200*time.Millisecond, 8*time.Second)
	err := e.Lab.Network().Cut(nil)
	e.end(targets(all), detail)
	return err
}

func targets(cuts []lab.Cut) (ids []string) {
	for _, c := range cuts {
		ids = append(ids, c.From)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// split cuts two groups from each other, both ways.
func split(a, b []string, port lab.Port) (cuts []lab.Cut) {
	for _, x := range a {
		for _, y := range b {
			if x != y {
				cuts = append(cuts, lab.Cut{From: x, To: y, Port: port}, lab.Cut{From: y, To: x, Port: port})
			}
		}
	}
	return cuts
}

// ring leaves each node the neighbours that make a majority with it.
func ring(all []string) (cuts []lab.Cut) {
	n := len(all)
	reach := (n/2 + 1) / 2 // neighbours on each side
	if n <= 3 {
		return split(all[:1], all[1:2], lab.AnyPort) // one link of a triangle
	}
	for i := range n {
		for d := reach + 1; d < n-reach; d++ {
			cuts = append(cuts, lab.Cut{From: all[i], To: all[(i+d)%n]})
		}
	}
	return cuts
}

func swizzle(ctx context.Context, e *Env) error {
	ids := e.some(1 + e.Rand.IntN(len(e.Members.List())))
	var cuts [][]lab.Cut
	flat := func() (all []lab.Cut) { return slices.Concat(cuts...) }
	e.begin(ids, "one by one")
	defer e.end(ids, "")
	for _, id := range ids {
		cuts = append(cuts, split([]string{id}, e.others(id), lab.AnyPort))
		if err := e.Lab.Network().Cut(flat()); err != nil {
			return err
		}
		if !e.wait(ctx, 100*time.Millisecond, 1500*time.Millisecond) {
			break
		}
	}
	for len(cuts) > 0 {
		i := e.Rand.IntN(len(cuts))
		cuts = slices.Delete(cuts, i, i+1)
		if err := e.Lab.Network().Cut(flat()); err != nil {
			return err
		}
		if !e.wait(ctx, 100*time.Millisecond, 1500*time.Millisecond) {
			break
		}
	}
	return e.Lab.Network().Cut(nil)
}
