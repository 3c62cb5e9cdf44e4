package cluster

import (
	"testing"
	"time"
)

// clockCase is something that happens to clocks and nodes, and by how much cluster
// time may then differ from the time that truly went by. 0 is no nanosecond.
type clockCase struct {
	name   string
	happen func(w *world)

	// gain is by how much cluster time may get ahead. It is the refill that nobody
	// waited for: of each key at most one full bucket.
	gain time.Duration
	// most says that it must get ahead by all of gain, or that what it loses must be
	// all of lose: the case is about that.
	most bool
	// lose is by how much it may fall behind, beside what a busy machine takes.
	lose time.Duration
}

const (
	hour  = time.Hour
	day   = 24 * hour
	years = 3653 * day // ten

	away = 30 * time.Minute // how long what is stopped stays away
)

// The keys: of whose buckets an hour refills a little, and more than all.
func clockTaps(t *testing.T) []tap {
	return []tap{
		newTap(t, 9, 10, 10*hour),     // one unit an hour
		newTap(t, 4, 1, time.Minute),  // full in 5 minutes
		newTap(t, 99, 1, time.Second), // full in 100 seconds
		newTap(t, 1, 1, 30*day),       // full in two months
	}
}

var wallErrors = []struct {
	name string
	by   time.Duration
}{{"an hour ahead", hour}, {"an hour behind", -hour}, {"ten years ahead", years}, {"ten years behind", -years}}

func TestRefillNeverExceedsElapsedTimeWhateverTheClocksSay(t *testing.T) {
	for name, cases := range map[string][]clockCase{
		"wall clocks while nodes run": wallsWhileRunning(),
		"wall clocks across restarts": wallsAcrossRestart(),
		"one machine rebooted":        rebootOfOne(),
		"a majority rebooted":         rebootOfAMajority(),
		"all machines rebooted":       rebootOfAll(),
		"boot clocks":                 bootClocks(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, tc := range cases {
				w.check(t, tc, clockTaps(t))
			}
		})
	}
}

// check has the keys drained, lets the case happen, and has them drained again.
func (w *world) check(t *testing.T, tc clockCase, taps []tap) {
	t.Helper()
	w.settle()
	began := machineClock{}.Boot()
	before := w.drain(taps)
	w.best = max(w.best, before.at-before.from)
	w.wallsRight(before.at, before.to)
	tc.happen(w)
	after := w.drain(taps)
	w.best += int64(tc.gain)
	costly := time.Duration(machineClock{}.Boot() - began) // a hand-over, or nobody who leads: no more than the case took

	moved := after.at - before.at
	if moved < 0 {
		t.Errorf("%s: cluster time went back by %s", tc.name, time.Duration(-moved))
	}
	ahead := time.Duration(moved - (after.to - before.from))  // at least
	behind := time.Duration((after.from - before.to) - moved) // at least
	switch {
	case after.at > after.to+w.best:
		t.Errorf("%s: cluster time gained %s, allowed are %s", tc.name, ahead, tc.gain)
	case behind > tc.lose+costly:
		t.Errorf("%s: cluster time lost %s, allowed are %s", tc.name, behind, tc.lose)
	case tc.most && tc.gain > 0 && ahead < tc.gain-costly, tc.most && tc.lose > 0 && behind < tc.lose-costly:
		t.Errorf("%s: cluster time gained %s, lost %s; what the case is about did not happen", tc.name, ahead, behind)
	}
	for _, tp := range taps {
		w.checkTap(t, tc, tp, before, after, costly)
	}
	for _, n := range w.nodes {
		if err := n.fatalReason(); err != nil {
			t.Fatalf("%s: %s stopped: %v", tc.name, n.cfg.ID, err)
		}
		if local, ok := n.Touch(); ok && local > w.now()+w.best {
			t.Errorf("%s: %s denies by a time that is %s ahead", tc.name, n.cfg.ID, time.Duration(local-w.now()-w.best))
		}
	}
	if tc.gain != 0 || tc.lose != 0 {
		w.best = after.at - after.from
	}
}

// checkTap counts units. The bucket was empty but for a part of one unit.
func (w *world) checkTap(t *testing.T, tc clockCase, tp tap, before, after drained, costly time.Duration) {
	t.Helper()
	got, burst := after.units[tp.name], tp.limit.Burst
	refilled := func(d int64) int64 { return min(burst, max(d, 0)/tp.limit.Interval) }
	if most := min(burst, refilled(after.to+w.best-before.at)+1); got > most {
		t.Errorf("%s: %d units of %s were admitted, at most %d can have been refilled", tc.name, got, tp.name, most)
	}
	if least := refilled(after.from - before.to - int64(tc.lose+costly)); got < least {
		t.Errorf("%s: %d units of %s were admitted, at least %d have been refilled", tc.name, got, tp.name, least)
	}
	if most := min(burst, refilled(after.at-before.at)+1); got > most { // P1, in cluster time
		t.Errorf("%s: %d units of %s in %s of cluster time", tc.name, got, tp.name, time.Duration(after.at-before.at))
	}
}
