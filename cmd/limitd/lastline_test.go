package main

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Goroutines of a node that has stopped itself go on logging until the process is
// gone.
func TestNothingIsLoggedAfterTheLastLine(t *testing.T) {
	var out bytes.Buffer
	w := &logWriter{w: &out}
	log := slog.New(slog.NewTextHandler(w, nil))
	log.Info("before")
	var late sync.WaitGroup
	late.Go(func() {
		for range 1000 {
			log.Info("on the way out")
		}
	})
	w.end()
	out.WriteString("limitd: the reason\n")
	late.Wait()
	log.Info("after")
	said := out.String()
	if !strings.Contains(said, "msg=before") || !strings.HasSuffix(said, "limitd: the reason\n") {
		t.Errorf("printed %q", said[max(0, len(said)-200):])
	}
}
