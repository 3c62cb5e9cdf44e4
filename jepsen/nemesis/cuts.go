package nemesis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"limitd/jepsen/lab"
)

var cuts = []Nemesis{
	{"isolate-leader", "a deposed leader that still answers", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.leader()
		return e.cut(ctx, id, split([]string{id}, e.others(id), lab.AnyPort))
	}},
	{"isolate-one", "a node alone that comes back with a term of its own", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.some(1)[0]
		return e.cut(ctx, id, split([]string{id}, e.others(id), lab.AnyPort))
	}},
	{"halves", "two sides that both go on", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		all := e.everybody()
		n := len(all) / 2
		return e.cut(ctx, fmt.Sprint(all[:n], " and ", all[n:]), split(all[:n], all[n:], lab.AnyPort))
	}},
	{"ring", "majorities that differ from node to node, and leaders that take turns", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		all := e.everybody()
		return e.cut(ctx, fmt.Sprint(all), ring(all))
	}},
	{"bridge", "two leaders, one on each side of the node that sees both", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		all := e.everybody()
		n := len(all) / 2
		return e.cut(ctx, all[n]+" sees both sides", split(all[:n], all[n+1:], lab.AnyPort))
	}},
	{"deaf", "a leader that others follow and that hears no acknowledgement", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim()
		return e.cut(ctx, id+" hears nobody", oneWay(e.others(id), []string{id}))
	}},
	{"mute", "a leader that hears everybody and whom nobody hears", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim()
		return e.cut(ctx, "nobody hears "+id, oneWay([]string{id}, e.others(id)))
	}},
	{"peers-only", "clients that still reach a leader that is none", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim()
		return e.cut(ctx, id, split([]string{id}, e.others(id), lab.PeerPort))
	}},
	{"clients-only", "a call that is charged and whose answer is lost", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim()
		return e.cut(ctx, "its answers to clients", []lab.Cut{{From: id, To: lab.Client, Port: lab.RESPPort}})
	}},
	{"swizzle", "links that go one by one and come back in another order", Links, []lab.Ability{lab.Netns}, swizzle},
	{"sever", "connections that are reset in the middle of a frame", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		pairs := append(e.everybody(), lab.Client)
		for range 3 + e.Rand.IntN(5) {
			e.Rand.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
			err := e.during(pairs[:2], "connections are reset", func() error { return e.Lab.Network().Sever(pairs[0], pairs[1]) })
			if err != nil || !e.wait(ctx, 100*time.Millisecond, time.Second) {
				return err
			}
		}
		return nil
	}},
}

// cut cuts for 0.2 to 8 s: for less than an election takes, and for longer.
func (e *Env) cut(ctx context.Context, detail string, all []lab.Cut) error {
	return e.during(senders(all), detail, func() error {
		if err := e.Lab.Network().Cut(all); err != nil {
			return err
		}
		e.wait(ctx, 200*time.Millisecond, 8*time.Second)
		return e.Lab.Network().Cut(nil)
	})
}

func senders(cuts []lab.Cut) (ids []string) {
	for _, c := range cuts {
		ids = append(ids, c.From)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// split cuts two groups from each other, both ways.
func split(a, b []string, port lab.Port) (all []lab.Cut) {
	for _, x := range a {
		for _, y := range b {
			all = append(all, lab.Cut{From: x, To: y, Port: port}, lab.Cut{From: y, To: x, Port: port})
		}
	}
	return all
}

func oneWay(from, to []string) (all []lab.Cut) {
	for _, x := range from {
		for _, y := range to {
			all = append(all, lab.Cut{From: x, To: y})
		}
	}
	return all
}

// ring leaves each node as many neighbours on both sides as make a majority with it.
// In a triangle they are all that there are, and one link is cut.
func ring(all []string) (cuts []lab.Cut) {
	n := len(all)
	if n <= 3 {
		return split(all[:1], all[1:2], lab.AnyPort)
	}
	reach := (n/2 + 1) / 2
	for i := range n {
		for d := reach + 1; d < n-reach; d++ {
			cuts = append(cuts, lab.Cut{From: all[i], To: all[(i+d)%n]})
		}
	}
	return cuts
}

// swizzle cuts some nodes off one after the other, and lets them back in another order.
func swizzle(ctx context.Context, e *Env) error {
	ids := e.some(1 + e.Rand.IntN(len(e.Roster.List())))
	back := slices.Clone(ids)
	e.Rand.Shuffle(len(back), func(i, j int) { back[i], back[j] = back[j], back[i] })
	return e.during(ids, "cut off one by one", func() error {
		var off []string
		set := func() error {
			var all []lab.Cut
			for _, id := range off {
				all = append(all, split([]string{id}, e.others(id), lab.AnyPort)...)
			}
			return e.Lab.Network().Cut(all)
		}
		for _, id := range ids {
			off = append(off, id)
			if err := set(); err != nil {
				return err
			}
			if !e.wait(ctx, 100*time.Millisecond, 1500*time.Millisecond) {
				break
			}
		}
		for _, id := range back {
			off = slices.DeleteFunc(off, func(x string) bool { return x == id })
			if err := set(); err != nil {
				return err
			}
			if len(off) > 0 && !e.wait(ctx, 100*time.Millisecond, 1500*time.Millisecond) {
				break
			}
		}
		return e.Lab.Network().Cut(nil)
	})
}
