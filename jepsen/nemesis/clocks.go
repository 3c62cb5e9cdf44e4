package nemesis

import (
	"context"
	"time"

	"limitd/jepsen/lab"
)

const year = 365 * 24 * time.Hour

var clocks = []Nemesis{
	{"clock-jump", "a limit that refills by the wall clock", "clock", []lab.Ability{lab.WallTime}, func(ctx context.Context, e *Env) error {
		steps := []time.Duration{time.Second, -time.Second, time.Hour, -time.Hour, 10 * year, -10 * year}
		ids := e.some(1 + e.Rand.IntN(len(e.Members.List())))
		for _, id := range ids {
			d := steps[e.Rand.IntN(len(steps))]
			e.begin([]string{id}, d.String())
			if err := e.Lab.Node(id).JumpWall(d); err != nil {
				return err
			}
		}
		e.wait(ctx, time.Second, 4*time.Second)
		e.end(ids, "")
		return nil
	}},
	{"clock-drift", "", "clock", []lab.Ability{lab.WallTime}, func(ctx context.Context, e *Env) error {
		n := e.victim()
		e.begin([]string{n.ID()}, "twice as fast, or half")
		if err := n.DriftWall([]float64{0.5, 2}[e.Rand.IntN(2)]); err != nil {
			return err
		}
		e.wait(ctx, 2*time.Second, 6*time.Second)
		err := n.DriftWall(1)
		e.end([]string{n.ID()}, "")
		return err
	}},
	{"clock-strobe", "", "clock", []lab.Ability{lab.WallTime}, func(ctx context.Context, e *Env) error {
		n := e.victim()
		e.begin([]string{n.ID()}, "back and forth by an hour")
		defer e.end([]string{n.ID()}, "")
		for i := range 100 {
			d := time.Hour
			if i%2 == 1 {
				d = -d
			}
			if err := n.JumpWall(d); err != nil {
				return err
			}
			if !e.wait(ctx, time.Millisecond, 30*time.Millisecond) {
				return nil
			}
		}
		return nil
	}},
}
