package trace

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Writer appends rows to a file, one write each. It may be used by many goroutines.
type Writer struct {
	node string
	fail func(error)

	mu     sync.Mutex
	f      *os.File
	broken bool
}

// Create opens the file for appending and notes that a process of the node begins.
// The first write that fails is told to fail, and is the last one: a trace with a
// gap would accuse the innocent, so from then on there is none.
func Create(file, node string, fail func(error)) (*Writer, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	w := &Writer{node: node, fail: fail, f: f}
	w.Write(Row{Kind: Start, PID: os.Getpid()})
	return w, nil
}

// Write writes a row, whose Node and Boot it sets.
func (w *Writer) Write(r Row) {
	r.Node, r.Boot = w.node, boot()
	line, err := json.Marshal(&r)
	if err == nil {
		line = append(line, '\n')
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return
	}
	if err == nil {
		_, err = w.f.Write(line)
	}
	if err != nil {
		w.broken = true
		w.fail(fmt.Errorf("trace %s ends here: %w", w.f.Name(), err))
	}
}

// Close closes the file. Rows that come later are dropped.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	return w.f.Close()
}

func boot() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
