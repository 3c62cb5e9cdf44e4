package main

import (
	"context"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"limitd/proc/nodes"
)

// session is a client at work in a cell with faults: one driver, whose two keys are
// new in each round. Its tallies belong to the goroutine that asks.
type session struct {
	m      *matrix
	row    *row
	driver *driver
	dead   atomic.Pointer[error] // the driver is of no more use

	keys        keys
	plain, byID tally
	id          int // of the call with an ID that is to be made, or repeated

	passed    atomic.Int64 // calls that were allowed
	recovered atomic.Bool  // one was, that began after the fault was over

	began   time.Time // of the fault, as far as it is known
	failed  bool      // since then
	healed  bool      // after that
	seconds []float64 // of each round whose fault had a beginning
}

func (s *session) usable() bool { return s.dead.Load() == nil }

func (s *session) broken(err error) { s.dead.CompareAndSwap(nil, &err) }

// begin is for a new round.
func (s *session) begin(k keys) {
	s.keys, s.plain, s.byID, s.id = k, tally{}, tally{}, 0
	s.passed.Store(0)
	s.recovered.Store(false)
	s.began, s.failed, s.healed = time.Time{}, false, false
}

// traffic calls both keys in turn, and keeps a reserve of each until the fault is over.
func (s *session) traffic(began *atomic.Int64, over, stop *atomic.Bool) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; s.usable() && !stop.Load(); n++ {
		isOver, t := over.Load(), &s.plain
		if n%2 == 1 {
			t = &s.byID
		}
		if t.allowed+t.unsure < s.m.limit-reserve || isOver && !s.recovered.Load() {
			if ok, err := s.ask(t); err != nil {
				s.broken(err)
			} else {
				s.time(began.Load(), ok)
				if ok && isOver {
					s.recovered.Store(true)
				}
			}
		}
		<-tick.C
	}
	if ns := began.Load(); ns > 0 && s.usable() && !s.failed {
		s.seconds = append(s.seconds, 0)
	}
}

// ask makes one call, and says whether it was allowed. A call with an ID is
// repeated under it until it is answered, as limitd's users are told to do.
func (s *session) ask(t *tally) (bool, error) {
	before, errs := t.allowed, t.refused+t.unsure
	var err error
	if t == &s.plain {
		err = s.m.throttle(s.driver, s.keys.plain, t)
	} else {
		var answered bool
		if answered, err = s.m.take(s.driver, s.keys.byID, fmt.Sprint(s.keys.byID, ":", s.id), t); answered {
			s.id++
		}
	}
	if t.refused+t.unsure > errs {
		s.surprise(t.last)
	}
	if t.allowed > before {
		s.passed.Add(1)
	}
	return t.allowed > before, err
}

// time notes the seconds from the beginning of the fault to the first success
// after the first error.
func (s *session) time(began int64, ok bool) {
	switch {
	case began == 0 || s.healed:
	case !ok:
		s.failed = true
	case s.failed:
		s.healed = true
		s.seconds = append(s.seconds, time.Since(time.Unix(0, began)).Seconds())
	}
}

// finish makes the rest of the 3·limit calls of each key, and judges.
func (s *session) finish(ctx context.Context, at *nodes.Node) error {
	for _, t := range []*tally{&s.plain, &s.byID} {
		for deadline := time.Now().Add(recovery); t.answered() < 3*s.m.limit && s.usable() && ctx.Err() == nil; {
			if _, err := s.ask(t); err != nil {
				s.broken(err)
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%d calls are not answered within %s: %s%s", 3*s.m.limit, recovery, t, s.driver.said)
			}
		}
	}
	if err := s.dead.Load(); err != nil {
		return *err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	hidden := 0
	if s.row.resends {
		hidden = 1
	}
	if err := s.plain.within(s.m.limit, hidden); err != nil {
		return fmt.Errorf("CL.THROTTLE: %w%s", err, s.driver.said)
	}
	if err := s.byID.exactly(s.m.limit); err != nil {
		return fmt.Errorf("RL.TAKE with an ID: %w%s", err, s.driver.said)
	}
	return s.m.exhausted(ctx, at, s.keys)
}

var digits = regexp.MustCompile(`\d+`)

// surprise notes the text of an error.
func (s *session) surprise(text string) {
	s.row.mu.Lock()
	defer s.row.mu.Unlock()
	s.row.surprise[digits.ReplaceAllString(text, "#")]++
}
