package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// lateCounts is how many times over a delay of the machine is allowed for: nodes have to
// elect a leader, and to catch up, when it is over.
const (
	lateCounts = 3
	lateMax    = time.Minute
)

// machine tells whether the machine keeps up.
type machine struct {
	mu      sync.Mutex
	syncing time.Time // since when the sync under way has run; zero: there is none
	until   time.Time // a timer was late, or a sync, until then
	late    time.Duration
}

// mountProbe makes a disk as the nodes have theirs: an ext4 in a file. It goes with the
// namespace.
func mountProbe(dir string) (at string, err error) {
	image, at := filepath.Join(dir, "disk", "probe.img"), filepath.Join(dir, "probe")
	err = errors.Join(os.Mkdir(at, 0o700), os.WriteFile(image, nil, 0o600), os.Truncate(image, 16<<20))
	for _, c := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, at}} {
		if err != nil {
			break
		}
		var out []byte
		if out, err = exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			err = fmt.Errorf("%s: %w: %s", strings.Join(c, " "), err, out)
		}
	}
	return at, err
}

// watch probes a disk as the nodes have theirs, and timers, until the function that it
// returns is called.
func (m *machine) watch(o Options) (end func() error, err error) {
	dir := o.Dir
	if !o.Proxy {
		if dir, err = mountProbe(o.Dir); err != nil {
			return nil, err
		}
	}
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- errors.Join(m.probe(ctx, f), f.Close()) }()
	return func() error {
		stop()
		if late := m.behind(); late > 0 {
			fmt.Printf("the machine did not keep up for %.1f s of the run\n", late.Seconds())
		}
		return <-ended
	}, nil
}

func (m *machine) probe(ctx context.Context, f *os.File) error {
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

// patience is a context that ends after d in which the machine keeps up.
func (m *machine) patience(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(context.Background())
	began, late := time.Now(), m.behind()
	go func() {
		for ctx.Err() == nil && time.Since(began) < d+min(lateCounts*(m.behind()-late), lateMax) {
			pause(ctx, probing)
		}
		end()
	}()
	return ctx, end
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
