package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Files of a run directory.
const (
	RunFile      = "run.json"
	EventsFile   = "history.jsonl"
	HealthFile   = "health.jsonl"
	SamplesFile  = "samples.jsonl"
	ScheduleFile = "schedule.jsonl"
	VerdictFile  = "verdict.json"
	EDNFile      = "history.edn"
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
	for file, l := range map[string]**lines{EventsFile: &r.events, HealthFile: &r.health, SamplesFile: &r.samples} {
		f, err := os.Create(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		*l = &lines{f: f, w: bufio.NewWriter(f)}
	}
	return r, nil
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
	err error
}

func (l *lines) add(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = l.w.Write(append(b, '\n'))
	}
	l.err = errors.Join(l.err, err)
}

func (l *lines) close() error { return errors.Join(l.err, l.w.Flush(), l.f.Close()) }

// WriteJSON writes a value as a file of dir.
func WriteJSON(dir, file string, v any) error {
	b, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), append(b, '\n'), 0o644)
}

// ReadJSON reads a file of dir that WriteJSON wrote.
func ReadJSON(dir, file string, v any) error {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, file), err)
	}
	return nil
}

// ReadEvents reads history.jsonl. Numbers of replies are int64.
func ReadEvents(dir string) ([]Event, error) {
	all, err := readLines[Event](dir, EventsFile)
	for i := range all {
		if all[i].Reply, err = exact(all[i].Reply, err); err != nil {
			return nil, fmt.Errorf("%s: event %d: %w", EventsFile, all[i].Index, err)
		}
	}
	return all, err
}

// ReadHealth reads health.jsonl.
func ReadHealth(dir string) ([]Health, error) { return readLines[Health](dir, HealthFile) }

// ReadSamples reads samples.jsonl.
func ReadSamples(dir string) ([]Sample, error) { return readLines[Sample](dir, SamplesFile) }

func readLines[T any](dir, file string) ([]T, error) {
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	d.UseNumber()
	for all := []T(nil); ; {
		var v T
		switch err := d.Decode(&v); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s, line %d: %w", filepath.Join(dir, file), len(all)+1, err)
		}
		all = append(all, v)
	}
}

// exact turns the numbers of a reply into int64.
func exact(v any, err error) (any, error) {
	switch x := v.(type) {
	case json.Number:
		n, e := x.Int64()
		return n, errors.Join(err, e)
	case []any:
		for i := range x {
			if x[i], err = exact(x[i], err); err != nil {
				return nil, err
			}
		}
	}
	return v, err
}
