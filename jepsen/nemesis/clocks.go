package nemesis

import (
	"context"
	"fmt"
	"time"

	"limitd/jepsen/lab"
)

const year = 365 * 24 * time.Hour

var jumps = []time.Duration{time.Second, -time.Second, time.Hour, -time.Hour, 10 * year, -10 * year}

// Where wall clocks stand after a jump they stay.
var clocks = []Nemesis{
	{"clock-leader", "a limit that refills by the leader's wall clock", Clocks, []lab.Ability{lab.WallTime}, func(ctx context.Context, e *Env) error {
		return e.jump(ctx, e.leader())
	}},
	{"clock-others", "time that jumps when a follower takes over", Clocks, []lab.Ability{lab.WallTime}, func(ctx context.Context, e *Env) error {
		return e.jump(ctx, e.others(e.leader())...)
	}},
	{"clock-all", "time that is agreed between wall clocks of which none is right", Clocks, []lab.Ability{lab.WallTime}, func(ctx context.Context, e *Env) error {
		return e.jump(ctx, e.everybody()...)
	}},
	{"clock-drift", "timeouts and limits that run as fast as a wall clock does", Clocks, []lab.Ability{lab.WallTime}, func(ctx context.Context, e *Env) error {
		id := e.victim()
		n := e.Lab.Node(id)
		rate := []float64{0.5, 2}[e.Rand.IntN(2)]
		return e.during([]string{id}, fmt.Sprintf("its wall clock runs %v times as fast", rate), func() error {
			if err := n.DriftWall(rate); err != nil {
				return err
			}
			e.wait(ctx, 2*time.Second, 6*time.Second)
			return n.DriftWall(1)
		})
	}},
	{"clock-strobe", "two readings of the wall clock that are taken for elapsed time", Clocks, []lab.Ability{lab.WallTime}, func(ctx context.Context, e *Env) error {
		id := e.victim()
		return e.during([]string{id}, "its wall clock goes an hour back and forth", func() error {
			for i := range 100 {
				if err := e.Lab.Node(id).JumpWall([]time.Duration{time.Hour, -time.Hour}[i%2]); err != nil {
					return err
				}
				if !e.wait(ctx, time.Millisecond, 30*time.Millisecond) {
					break
				}
			}
			return nil
		})
	}},
}

// jump moves wall clocks, each by another time, and lets that sink in.
func (e *Env) jump(ctx context.Context, ids ...string) error {
	by := map[string]time.Duration{}
	for _, id := range ids {
		by[id] = jumps[e.Rand.IntN(len(jumps))]
	}
	return e.during(ids, fmt.Sprint(by), func() error {
		for _, id := range ids {
			if err := e.Lab.Node(id).JumpWall(by[id]); err != nil {
				return err
			}
		}
		e.wait(ctx, 500*time.Millisecond, 4*time.Second)
		return nil
	})
}
