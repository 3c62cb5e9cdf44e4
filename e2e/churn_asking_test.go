package e2e

import (
	"context"
	"os"
	"regexp"
	"slices"
	"time"
)

// ask sends RL.CLUSTER to this node.
func (s *slot) ask(args ...any) error {
	return s.r.WithTimeout(15*time.Second).Do(context.Background(), append([]any{"RL.CLUSTER"}, args...)...).Err()
}

// until asks for a change again and again until it is made, or done says that it
// is; either may be nil.
func (w *churn) until(what string, ask func() error, done func() bool) {
	w.t.Helper()
	var last error
	for deadline := time.Now().Add(patience); ; {
		if ask != nil {
			if last = ask(); last == nil {
				return
			}
			w.refused(last)
		}
		if done != nil && done() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %v: %s (%v)\n%s", patience, what, last, w.picture())
		}
		w.look()
		time.Sleep(50 * time.Millisecond) // between two attempts
	}
}

var figures = regexp.MustCompile(`\bn[0-9]+(-[0-9a-f]+)?\b|[0-9]+(\.[0-9]+)?`)

// refused counts why something has to be asked for again, without the names and figures.
func (w *churn) refused(err error) {
	w.refusals[figures.ReplaceAllString(err.Error(), "…")]++
}

// letGo has a member removed.
func (w *churn) letGo(s *slot, ask func() error, done func() bool) {
	w.mu.Lock()
	s.going = true
	w.mu.Unlock()
	w.until(s.id+" is no member", ask, done)
	w.mu.Lock()
	s.role = ""
	w.mu.Unlock()
}

// awaitEnd waits until the process of a removed node has ended with one of these codes.
func (w *churn) awaitEnd(s *slot, codes ...int) {
	w.t.Helper()
	eventually(w.t, patience, s.id+" ends", func() bool {
		s.proc.Lock()
		defer s.proc.Unlock()
		return !s.running()
	})
	s.proc.Lock()
	defer s.proc.Unlock()
	if code := s.exitCode(); !slices.Contains(codes, code) {
		w.t.Errorf("%s ended with code %d, want one of %v:\n%s", s.id, code, codes, tail(s.out.String(), 10))
	}
}

// killForGood kills a node when enough others are up. putUp is to follow.
func (w *churn) killForGood(s *slot) {
	w.awaitTakeDown(s)
	s.proc.Lock()
	defer s.proc.Unlock()
	s.kill()
}

func (w *churn) awaitTakeDown(s *slot) {
	w.t.Helper()
	eventually(w.t, patience, "enough nodes are up to take "+s.id+" down", func() bool { return w.takeDown(s) })
}

// empty makes a slot free for a new node.
func (w *churn) empty(s *slot) {
	w.t.Helper()
	s.proc.Lock()
	defer s.proc.Unlock()
	if err := os.RemoveAll(s.data); err != nil {
		w.t.Fatal(err)
	}
	w.set(s, "")
}
