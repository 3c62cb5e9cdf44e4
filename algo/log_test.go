package algo_test

import (
	"testing"

	"limitd/algo"
)

// What counts no longer leaves the state with the next admission, or the state would
// grow for ever.
func TestALogHoldsOnlyWhatCounts(t *testing.T) {
	l := mustParse(t, "log:1000/10s")
	var k keyed
	for i := range int64(100) {
		now := 1_000_000e9 + i*1e9
		k.call(l, now, 0, 1)
		if want := min(i+1, 10) * algo.LogEntry; int64(len(k.state)) != want {
			t.Fatalf("after %d calls, one a second, it has %d bytes, want %d", i+1, len(k.state), want)
		}
	}
	k.call(l, 1_000_200e9, 0, -1) // a refund, too
	if len(k.state) != 0 {
		t.Errorf("a refund when nothing counts leaves %d bytes", len(k.state))
	}
}

// A refund of a charge that is in the log no more gives nothing back.
func TestARefundOfWhatIsNotInTheLogChangesNothing(t *testing.T) {
	l := mustParse(t, "log:10/10s")
	var k keyed
	k.call(l, 1_000_000e9, 0, 3)
	k.call(l, 1_000_002e9, 0, 3)
	for _, charged := range []int64{999_999e9, 1_000_001e9, 1_000_003e9} {
		v, e := l.Refund(k.state, 1_000_004e9, 0, 2, charged, nil)
		kept := string(k.state[e.Drop:len(k.state)-e.Cut]) + string(e.State)
		if v.Remaining != 4 || kept != string(k.state) || e.Expiry != k.expiry {
			t.Errorf("charged at %d: %+v, a state of %d bytes that expires at %d", charged, v, len(kept), e.Expiry)
		}
	}
}
