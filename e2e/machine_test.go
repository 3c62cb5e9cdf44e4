package e2e

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// machine notes when it ran late: it writes and syncs a little all the time, on the
// disk of the tests, with a timer between two writes. Whoever bounds how long a call
// may take allows for that; on a machine that has time for the tests it is next to
// nothing, and on one that has not, a bound in seconds says nothing of limitd.
var machine lateness

type lateness struct {
	mu   sync.Mutex
	late []late
	from time.Time // of the newest write
}

// late is one time that the machine was, at its end.
type late struct {
	at time.Time
	by time.Duration
}

const (
	lateEach   = 50 * time.Millisecond // between two writes
	lateLeast  = 20 * time.Millisecond // what is not worth a note
	lateChain  = 4                     // a call waits for a client, two nodes and a disk, one after the other
	lateTooFar = time.Second           // of a chain: a heartbeat timeout, and a call's
)

// watch writes to a file in dir until stop is closed.
func (m *lateness) watch(dir string, stop <-chan struct{}) error {
	f, err := os.Create(filepath.Join(dir, "lateness"))
	if err != nil {
		return err
	}
	go func() {
		defer f.Close()
		for {
			began := time.Now()
			m.mu.Lock()
			m.from = began
			m.mu.Unlock()
			select {
			case <-stop:
				return
			case <-time.After(lateEach):
			}
			f.WriteAt([]byte("late?"), 0) // of one that fails, only the time matters
			f.Sync()
			m.note(began)
		}
	}()
	return nil
}

func (m *lateness) note(began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if by := time.Since(began) - lateEach; by > lateLeast {
		m.late = append(m.late, late{time.Now(), by})
	}
}

// since is how much longer than on a machine that has time a call may have taken
// since then.
func (m *lateness) since(began time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	worst := max(0, time.Since(m.from)-lateEach-lateLeast) // of the write that is under way
	for _, l := range m.late {
		if l.at.After(began) {
			worst = max(worst, l.by)
		}
	}
	return lateChain * worst
}

// within fails if what took longer than d, and than d and what the machine was late by.
func within(t testing.TB, what string, d, took time.Duration, began time.Time) {
	t.Helper()
	if late := machine.since(began); took > d+late {
		t.Errorf("%s: %v, want %v at most (and %v, by which the machine was late)", what, took, d, late)
	}
}

// calm says that the machine had time for the tests: one that had not stops leaders
// that are well, and calls run out of time.
func (m *lateness) calm(began time.Time) bool { return m.since(began) < lateTooFar }

// undoubted fails if calls were in doubt though the machine was calm.
func undoubted(t testing.TB, what string, all tally, began time.Time) {
	t.Helper()
	if all.inDoubt > 0 && machine.calm(began) {
		t.Errorf("%s: %d calls are in doubt (and the machine was late by %v): %v", what, all.inDoubt, machine.since(began), all)
	}
}

// decided fails if calls were refused or in doubt though the machine was calm.
func decided(t testing.TB, what string, all tally, began time.Time) {
	t.Helper()
	undoubted(t, what, all, began)
	if len(all.sure) > 0 && machine.calm(began) {
		t.Errorf("%s: calls were refused (and the machine was late by %v): %v", what, machine.since(began), all)
	}
}
