package cluster

import (
	"testing"
	"time"
)

// Rests must be neither so many that an install takes for ever, nor so long.
func TestWorkRestsForAsLongAsItTookAndNotForLonger(t *testing.T) {
	for work, want := range map[time.Duration]time.Duration{
		0: 0, paceWork - 1: 0, paceWork: paceWork, 700 * time.Microsecond: 700 * time.Microsecond, time.Hour: paceRest,
	} {
		if got := restAfter(work); got != want {
			t.Errorf("after %v it rests for %v, want %v", work, got, want)
		}
	}
	const steps = 10_000
	var p pacing
	began := time.Now()
	for range steps {
		p.step()
	}
	if took := time.Since(began); took > steps*paceWork/2 {
		t.Errorf("%d steps without work took %v: it rests at each", steps, took)
	}
}
