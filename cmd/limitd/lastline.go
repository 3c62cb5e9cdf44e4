package main

import (
	"io"
	"sync"
)

// logWriter is where a command logs until it has ended. A node that stops itself does
// not wait for all of its goroutines, and what they still have to say must not come
// after the last line, which is the one that people and scripts read.
type logWriter struct {
	mu   sync.Mutex
	w    io.Writer
	over bool
}

func (l *logWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return len(b), nil
	}
	return l.w.Write(b)
}

// end drops all that is written from now on.
func (l *logWriter) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}
