package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestHeadroomOfTheHeap(t *testing.T) {
	const MB = 1 << 20
	for _, c := range []struct {
		live    uint64
		percent int
	}{
		{0, 100}, {1, 100}, {4 * MB, 100}, {128 * MB, 100}, {256 * MB, 50}, {512 * MB, 25}, {600 * MB, 25}, {64 << 30, 25}, {math.MaxUint64, 25},
	} {
		if got := collectorPercent(c.live); got != c.percent {
			t.Errorf("%d bytes live: %d %%, want %d", c.live, got, c.percent)
		}
	}
}

// What the operator set in the environment stays.
func TestCollectorLeavesWhatTheOperatorSet(t *testing.T) {
	percent := debug.SetGCPercent(70)
	limit := debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	paceCollector()()
	if got := debug.SetGCPercent(100); got != 70 {
		t.Error("GOGC=70 became", got)
	}
	debug.SetMemoryLimit(1 << 40)
	paceCollector()()
	if got := debug.SetMemoryLimit(-1); got != 1<<40 {
		t.Error("GOMEMLIMIT became", got)
	}
}
