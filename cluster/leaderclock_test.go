package cluster

import (
	"math"
	"testing"
	"time"

	"limitd/snapshot"
)

func TestClockOfANewLeader(t *testing.T) {
	day := int64(24 * time.Hour)
	for _, tc := range []struct {
		name          string
		said          []testimony
		applied, want int64
	}{
		{"the largest receipt", []testimony{{known: true, at: 70, wall: 900}, {known: true, at: 90, wall: 900}, {known: true, at: 80}}, 50, 90},
		{"one receipt is better than any wall clock", []testimony{{wall: 900}, {known: true, at: 60, wall: 10}, {wall: 800}}, 50, 60},
		{"no receipt: the lowest wall clock", []testimony{{wall: 900}, {wall: 700}, {wall: 800}}, 50, 700},
		{"never below the applied time", []testimony{{wall: 20}, {wall: 900}}, 50, 50},
		{"a receipt below the applied time", []testimony{{known: true, at: 40}}, 50, 50},
		{"400 days ahead is still believed", []testimony{{wall: 50 + 400*day}}, 50, 50 + 400*day},
		{"further ahead is not", []testimony{{wall: 51 + 400*day}}, 50, 50},
		{"a receipt further ahead is not", []testimony{{known: true, at: 500 * day}}, 50, 50},
	} {
		got, _ := boundBase(baseOf(tc.said), tc.applied)
		if got != tc.want {
			t.Errorf("%s: base %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestBatchTimeAlwaysTakesEffect(t *testing.T) {
	const applied = int64(1000)
	clock := leaderClock{base: 900, boot: 50}
	for boot, want := range map[int64]int64{
		-5: applied, 50: applied, 150: applied, 151: 1001,
		150 + int64(maxLead):     applied + int64(maxLead),
		150 + int64(maxLead) + 1: applied, // not believed
		math.MaxInt64 / 2:        applied,
		math.MaxInt64:            applied, // the sum wraps
	} {
		if got, bounded := clock.at(boot, applied); got != want || bounded != (boot > 150+int64(maxLead) && boot < math.MaxInt64) {
			t.Errorf("at %d the batch has time %d (bounded: %v), want %d", boot, got, bounded, want)
		}
	}
	if got, _ := clock.at(1<<60, 0); got != 1<<60+850 {
		t.Errorf("the first batch ever has time %d", got)
	}
}

func TestBaseTooFarAheadIsReported(t *testing.T) {
	if _, bounded := boundBase(1<<62, 1); !bounded {
		t.Error("a base far ahead was not reported")
	}
	if base, bounded := boundBase(1<<62, 0); bounded || base != 1<<62 {
		t.Error("the first leader's wall clock starts cluster time, wherever it stands")
	}
}

func TestReceiptGoesOnWithElapsedTime(t *testing.T) {
	clock := &fixedClock{boot: 1000, wall: 5, id: "a"}
	r := receipts{clock: clock}
	if _, ok := r.estimate(1000); ok {
		t.Fatal("nothing arrived, and there is an estimate")
	}
	r.note(500, 1)
	clock.boot, clock.wall = 1300, -77
	if got, _ := r.estimate(clock.boot); got != 800 {
		t.Errorf("300 ns after a receipt of 500 it is %d, want 800", got)
	}
	r.note(400, 1) // arrives late, says less
	if got, _ := r.estimate(clock.boot); got != 800 {
		t.Errorf("an older entry moved the estimate to %d", got)
	}
	r.note(810, 1)
	if got, _ := r.estimate(clock.boot); got != 810 {
		t.Errorf("a newer entry gives %d, want 810", got)
	}
}

// An entry that was never committed may have carried a wrong time. The next leader's
// word counts more, though it says less.
func TestReceiptOfANewerLeaderCounts(t *testing.T) {
	clock := &fixedClock{boot: 1000, id: "a"}
	r := receipts{clock: clock}
	r.note(9999, 3)
	r.note(500, 4)
	if got, _ := r.estimate(clock.boot); got != 500 {
		t.Errorf("after a newer leader's entry it is %d, want 500", got)
	}
	r.note(400, 2) // an entry of long ago, on a node that catches up
	if got, _ := r.estimate(clock.boot); got != 500 {
		t.Errorf("an entry of an older term moved the estimate to %d", got)
	}
}

func TestReceiptOfAnotherBootIsNoReceipt(t *testing.T) {
	clock := &fixedClock{boot: 1000, id: "this boot"}
	for _, tc := range []struct {
		name string
		s    snapshot.Receipt
		want bool
	}{
		{"same boot", snapshot.Receipt{At: 5, Boot: 900, BootID: "this boot"}, true},
		{"another boot", snapshot.Receipt{At: 5, Boot: 900, BootID: "the boot before"}, false},
		{"no boot id", snapshot.Receipt{At: 5, Boot: 900}, false},
		{"from the future of this boot", snapshot.Receipt{At: 5, Boot: 1001, BootID: "this boot"}, false},
	} {
		r := receipts{clock: clock}
		r.restore(tc.s)
		if _, got := r.estimate(clock.boot); got != tc.want {
			t.Errorf("%s: a receipt: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestTestimonyTravels(t *testing.T) {
	for _, want := range []testimony{{}, {known: true, at: -1, wall: 1 << 62}, {wall: -5}} {
		if got, err := decodeTestimony(want.encode()); err != nil || got != want {
			t.Errorf("%+v came as %+v, %v", want, got, err)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, 16), make([]byte, 18), append([]byte{2}, make([]byte, 16)...)} {
		if _, err := decodeTestimony(b); err == nil {
			t.Errorf("%x was taken for a testimony", b)
		}
	}
}

type fixedClock struct {
	boot, wall int64
	id         string
}

func (c *fixedClock) Boot() int64    { return c.boot }
func (c *fixedClock) Wall() int64    { return c.wall }
func (c *fixedClock) BootID() string { return c.id }
