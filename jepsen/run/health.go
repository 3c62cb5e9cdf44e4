package run

import (
	"context"
	"reflect"
	"time"

	"limitd/jepsen/history"
)

// looking is how late a line of health.jsonl may be; package check allows for more.
const looking = 20 * time.Millisecond

// watchHealth writes what works whenever that changes, until ctx ends. A machine that
// does not keep up is no place for a healthy node.
func (r *runner) watchHealth(ctx context.Context) {
	var before map[string]history.NodeHealth
	for tick := time.NewTicker(looking); ; {
		now := r.lab.Health()
		for id, h := range now {
			h.Voter = r.env.Roster.Votes(id)
			h.Up = h.Up && r.machine.keepsUp()
			now[id] = h
		}
		if !reflect.DeepEqual(before, now) {
			r.rec.Health(now)
			before = now
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}
