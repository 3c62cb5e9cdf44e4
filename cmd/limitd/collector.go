package main

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	defaultPercent = 100 // Go's GOGC
	leastPercent   = 25
	leastHeadroom  = 128 << 20 // bytes that a heap may grow by in any case, if its size allows that many

	collectorEvery = time.Second
)

// collectorPercent is by how many percent a heap of live bytes may grow before the garbage collector runs.
//
// Go's rule lets any heap double. What limitd keeps, however, is mostly a table without pointers: to look through it costs next to
// nothing, and half a gigabyte of it should not take half a gigabyte more for garbage.
func collectorPercent(live uint64) int {
	if live == 0 {
		return defaultPercent
	}
	return int(max(leastPercent, min(defaultPercent, leastHeadroom*100/live)))
}

// paceCollector fits the collector to the size of the heap until end is called, unless GOGC or GOMEMLIMIT say what the operator wants.
func paceCollector() (end func()) {
	percent := debug.SetGCPercent(defaultPercent)
	if percent != defaultPercent || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		debug.SetGCPercent(percent)
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(collectorEvery)
		defer t.Stop()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			select {
			case <-done:
				debug.SetGCPercent(defaultPercent)
				return
			case <-t.C:
			}
			metrics.Read(live)
			if want := collectorPercent(live[0].Value.Uint64()); want < percent-percent/10 || want > percent+percent/10 {
				percent = want
				debug.SetGCPercent(percent)
			}
		}
	}()
	return func() { close(done) }
}
