package run

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A machine that has no time for the nodes looks like nodes that do not answer. So it is
// watched too: while a sync of a few bytes, or a timer, is late by more than that, no
// node counts as healthy. On a machine that is not overloaded it never is.
const (
	syncLate  = 150 * time.Millisecond // half a heartbeat timeout
	timerLate = 100 * time.Millisecond
	probing   = 100 * time.Millisecond
)

// machine tells whether the machine keeps up.
type machine struct {
	mu      sync.Mutex
	syncing time.Time // since when the sync under way has run; zero: there is none
	until   time.Time // a timer was late, or a sync, until then
	late    time.Duration
}

// watch probes the disk under dir, and timers, until ctx ends.
func (m *machine) watch(ctx context.Context, dir string) error {
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	for {
		due := time.Now().Add(probing)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(probing):
		}
		m.note(time.Since(due), timerLate)
		m.mu.Lock()
		m.syncing = time.Now()
		m.mu.Unlock()
		_, err := f.WriteAt([]byte("probe"), 0)
		if err == nil {
			err = f.Sync()
		}
		m.mu.Lock()
		took := time.Since(m.syncing)
		m.syncing = time.Time{}
		m.mu.Unlock()
		if m.note(took, syncLate); err != nil {
			return err
		}
	}
}

// note counts what was late by more than it may be.
func (m *machine) note(by, most time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if by > most {
		m.late += by
		m.until = time.Now().Add(2 * looking) // so that it is seen
	}
}

// keepsUp says that nothing is late now.
func (m *machine) keepsUp() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().After(m.until) && (m.syncing.IsZero() || time.Since(m.syncing) < syncLate)
}

// behind is how long the machine did not keep up, in all.
func (m *machine) behind() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.late
}
