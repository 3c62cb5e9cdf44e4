package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/nemesis"
)

// period is one period of the schedule: faults at once, then all is healed.
type period struct {
	At     int64    `json:"at"` // ns of the run
	Faults []string `json:"faults"`
	Healed int64    `json:"healed"`
	Well   int64    `json:"well"` // all members serve again
}

// calmTime is a pause in which a cluster must serve as if nothing had ever happened.
const calmTime = 6 * time.Second

// settled is how long a healed cluster may take until all members serve.
const settled = 25 * time.Second

// harass runs periods of faults until ctx ends. Each is followed by a healing and by
// the proof that all members serve again; what did not come back is returned, and
// ends the run.
func (r *runner) harass(ctx context.Context, all []nemesis.Nemesis) (unsettled []string, err error) {
	out, err := os.Create(filepath.Join(r.o.Dir, history.ScheduleFile))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	draw := rand.New(rand.NewPCG(r.o.Seed, 1))
	for stream := uint64(100); ctx.Err() == nil; stream += 10 {
		p := period{At: r.rec.Now()}
		faults := []nemesis.Nemesis{all[draw.IntN(len(all))]}
		if second := all[draw.IntN(len(all))]; draw.IntN(10) < 4 && second.Group != faults[0].Group {
			faults = append(faults, second)
		}
		var wait sync.WaitGroup
		failed := make([]error, len(faults))
		for i, n := range faults {
			p.Faults = append(p.Faults, n.Name)
			env := r.env.As(n.Name, rand.New(rand.NewPCG(r.o.Seed, stream+uint64(i))))
			wait.Go(func() {
				if err := n.Run(ctx, env); err != nil {
					failed[i] = fmt.Errorf("nemesis %s: %w", n.Name, err)
				}
			})
		}
		wait.Wait()
		p.Healed = r.rec.Now()
		if err := errors.Join(errors.Join(failed...), r.lab.Heal()); err != nil {
			return nil, err
		}
		says := r.restore()
		p.Well = r.rec.Now()
		if err := json.NewEncoder(out).Encode(p); err != nil {
			return nil, err
		}
		if says != nil {
			return []string{fmt.Sprintf("after %v: %v", p.Faults, says)}, nil
		}
		calm := time.Duration(draw.Int64N(int64(time.Second)))
		if draw.IntN(4) == 0 {
			calm = calmTime
		}
		select {
		case <-ctx.Done():
		case <-time.After(calm):
		}
	}
	return nil, nil
}

// restore starts the members that do not run, gives those their vote back that lost
// it, and waits until all of them serve.
func (r *runner) restore() error {
	deadline := time.Now().Add(settled)
	for {
		err := r.serving()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// serving says what keeps a member from serving, and does what an operator would do.
func (r *runner) serving() error {
	var failed error
	for _, id := range r.members.List() {
		if n := r.lab.Node(id); !n.Running() {
			code, _ := n.Exited()
			failed = errors.Join(failed, fmt.Errorf("%s had ended with code %d", id, code))
			if err := n.Start(); err != nil {
				return err
			}
		}
	}
	if failed != nil {
		return failed
	}
	for _, id := range r.members.List() {
		f, err := r.dial.Info(id)
		switch {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
			continue
		case f["raft_role"] == "nonvoter":
			_, err := r.dial.AskFor(10*time.Second, id, "RL.CLUSTER", "PROMOTE", id)
			failed = errors.Join(failed, fmt.Errorf("%s has no vote: %v", id, err))
			continue
		}
		r.members.SetVote(id, true)
		if _, err := r.dial.Ask(id, "CL.THROTTLE", "limitd:ready", "0", "1", "1", "0"); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
		}
	}
	return failed
}
