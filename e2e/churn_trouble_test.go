package e2e

import (
	"math/rand/v2"
	"syscall"
	"time"
)

// trouble is what happens to a node, and how it gets over it.
type trouble struct {
	name  string
	short bool // it is up again at once, so nobody asks whether enough others are up
	begin syscall.Signal
	end   func(*churn, *slot)
}

var troubles = []trouble{
	{"kill -9", false, syscall.SIGKILL, (*churn).startAgain},
	{"kill -9 and start", true, syscall.SIGKILL, (*churn).startAgain},
	{"SIGTERM", false, syscall.SIGTERM, (*churn).startAgain},
	{"SIGSTOP", false, syscall.SIGSTOP, func(_ *churn, s *slot) { s.cmd.Process.Signal(syscall.SIGCONT) }},
}

// makeTrouble picks on one random member after the other until it is told to stop.
func (w *churn) makeTrouble(rng *rand.Rand, stop <-chan struct{}) {
	for {
		if !pause(rng, 2*time.Second, stop) {
			return
		}
		members, tr := w.members(), troubles[rng.IntN(len(troubles))]
		s := members[rng.IntN(len(members))]
		if !tr.short && !w.takeDown(s) {
			continue
		}
		w.afflict(s, tr, rng, stop)
		if !tr.short {
			w.putUp(s)
		}
	}
}

func (w *churn) afflict(s *slot, tr trouble, rng *rand.Rand, stop <-chan struct{}) {
	s.proc.Lock()
	defer s.proc.Unlock()
	if !s.running() {
		return
	}
	s.cmd.Process.Signal(tr.begin) // fails if it has just ended: see startAgain
	if !tr.short {
		pause(rng, 2*time.Second, stop)
	}
	tr.end(w, s)
	w.troubled[tr.name]++
}

// startAgain starts a node that was told to end. One that has ended because it is
// no member any more stays ended; one that had just been started may not have known
// yet what SIGTERM means.
func (w *churn) startAgain(s *slot) {
	code := s.wait(20 * time.Second)
	w.mu.Lock()
	removed := code == 3 && (s.going || s.role == "")
	w.mu.Unlock()
	if removed {
		return
	}
	if code > 0 {
		w.t.Errorf("%s ended with code %d:\n%s", s.id, code, tail(s.out.String(), 20))
	}
	w.start(s.node)
}

// pause waits for a random time; false if it is to stop.
func pause(rng *rand.Rand, most time.Duration, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	case <-time.After(time.Duration(rng.Int64N(int64(most)))):
		return true
	}
}

// look finds nodes that have ended though nobody asked them to.
func (w *churn) look() {
	for _, s := range w.members() {
		if s.proc.TryLock() {
			w.lookAt(s)
			s.proc.Unlock()
		}
	}
}

// lookAt is look for one node, whose proc is held.
func (w *churn) lookAt(s *slot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.role != "" && !s.going && !s.down && !s.running() {
		w.t.Errorf("%s ended by itself with code %d:\n%s", s.id, s.exitCode(), tail(s.out.String(), 20))
		s.down = true // said once
	}
}
