package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/nemesis"
)

// Period is one period of the schedule, a line of schedule.jsonl: faults together, then
// all is healed. Times are ns of the run.
type Period struct {
	At     int64    `json:"at"`
	Faults []string `json:"faults"`
	After  []int64  `json:"after"`  // each fault begins that much later than At, ns
	Healed int64    `json:"healed"` // the faults are over
	Well   int64    `json:"well"`   // all members serve again
}

// Streams of random numbers of a seed; the clients' begin at 1000 (package workload).
const (
	scheduleStream = 1
	operatorStream = 2
	olderStream    = 3
	dateStream     = 4
	faultStreams   = 1 << 32 // faultsMost for each period
)

const faultsMost = 3 // in a period

const (
	lateMost = time.Second     // by which a period's second and third fault begin later
	calmMost = time.Second     // between two periods
	longCalm = 6 * time.Second // every fourth time: service must be as if nothing had ever happened
)

// plan is what is drawn for a period before it begins.
type plan struct {
	faults []nemesis.Nemesis
	after  []time.Duration
	calm   time.Duration
}

func draw(r *rand.Rand, all []nemesis.Nemesis) (p plan) {
	p.faults = nemesis.Draw(r, all)
	for i := range faultsMost {
		after := time.Duration(r.Int64N(int64(lateMost)))
		if i == 0 {
			after = 0
		}
		if i < len(p.faults) {
			p.after = append(p.after, after)
		}
	}
	p.calm = time.Duration(r.Int64N(int64(calmMost)))
	if r.IntN(4) == 0 {
		p.calm = longCalm
	}
	return p
}

// begin has a fault begin the plan. Of the others, those stay that can be at work with it.
func (p *plan) begin(first nemesis.Nemesis) {
	faults, after := []nemesis.Nemesis{first}, []time.Duration{0}
	for i, n := range p.faults {
		if n.Takes&first.Takes == 0 && len(faults) < faultsMost {
			faults, after = append(faults, n), append(after, p.after[i])
		}
	}
	p.faults, p.after = faults, after
}

// harass makes periods of faults until ctx ends. Each is followed by a healing and by the
// proof that all members serve again; what keeps them from it is returned as says, and
// there are no more periods then. An error is the lab's. first, if there is one, is in the
// first period whatever is drawn.
func (r *runner) harass(ctx context.Context, first *nemesis.Nemesis, all []nemesis.Nemesis) (says, err error) {
	out, err := os.Create(filepath.Join(r.o.Dir, history.ScheduleFile))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if len(all) == 0 {
		<-ctx.Done()
		return nil, nil
	}
	random := rand.New(rand.NewPCG(r.o.Seed, scheduleStream))
	for stream := uint64(faultStreams); ctx.Err() == nil; stream += faultsMost {
		plan := draw(random, all)
		if stream == faultStreams && first != nil {
			plan.begin(*first)
		}
		p := Period{At: r.rec.Now()}
		for i, n := range plan.faults {
			p.Faults, p.After = append(p.Faults, n.Name), append(p.After, int64(plan.after[i]))
		}
		err := r.together(ctx, plan, stream)
		p.Healed = r.rec.Now()
		if err := errors.Join(err, r.lab.Heal()); err != nil {
			return nil, err
		}
		if says = r.env.Operate(); says != nil {
			says = fmt.Errorf("after %v: %w", p.Faults, says)
		}
		p.Well = r.rec.Now()
		if err := json.NewEncoder(out).Encode(p); err != nil || says != nil {
			return says, err
		}
		pause(ctx, plan.calm)
	}
	return nil, nil
}

// together lets the faults of a period act, and returns when all are over.
func (r *runner) together(ctx context.Context, p plan, stream uint64) error {
	failed := make(chan error, len(p.faults))
	for i, n := range p.faults {
		env := r.env.As(n.Name, rand.New(rand.NewPCG(r.o.Seed, stream+uint64(i))))
		go func() {
			pause(ctx, p.after[i])
			err := n.Run(ctx, env)
			if err != nil {
				err = fmt.Errorf("nemesis %s: %w", n.Name, err)
			}
			failed <- err
		}()
	}
	var all error
	for range p.faults {
		all = errors.Join(all, <-failed)
	}
	return all
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
