package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Recorder writes a run's lines as they happen. It may be used by many goroutines.
type Recorder struct {
	start time.Time

	mu                      sync.Mutex
	events, health, samples *lines
	next                    int
}

// NewRecorder makes the files in dir. Time 0 is now.
func NewRecorder(dir string) (*Recorder, error) {
	r := &Recorder{start: time.Now()}
	var failed error
	create := func(file string) *lines {
		f, err := os.Create(filepath.Join(dir, file))
		failed = errors.Join(failed, err)
		return &lines{f: f, w: bufio.NewWriter(f)}
	}
	r.events, r.health, r.samples = create(EventsFile), create(HealthFile), create(SamplesFile)
	return r, failed
}

// Now is the time of the run, ns.
func (r *Recorder) Now() int64 { return int64(time.Since(r.start)) }

// Event writes an event, whose Index and Time it sets: the order of the lines is the
// order of their times.
func (r *Recorder) Event(e Event) Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Index, e.Time = r.next, r.Now()
	r.next++
	r.events.add(e)
	return e
}

// Health writes what works from now on.
func (r *Recorder) Health(nodes map[string]NodeHealth) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.add(Health{Time: r.Now(), Nodes: nodes})
}

// Sample writes what a node said of itself.
func (r *Recorder) Sample(s Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Time = r.Now()
	r.samples.add(s)
}

// Close ends the files, and says what could not be written.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.events.close(), r.health.close(), r.samples.close())
}

// lines is a JSONL file.
type lines struct {
	f   *os.File
	w   *bufio.Writer
	err error // the first one
}

func (l *lines) add(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = l.w.Write(append(b, '\n'))
	}
	if l.err == nil {
		l.err = err
	}
}

func (l *lines) close() error {
	if err := l.w.Flush(); l.err == nil {
		l.err = err
	}
	return errors.Join(l.err, l.f.Close())
}
