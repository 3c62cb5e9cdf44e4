package cluster

import "testing"

func TestCommitIndexCoversOnlyFromTheTermsFirstEntryOn(t *testing.T) {
	var n newestTerm
	if n.covers(0, 0) || n.covers(1, 5) {
		t.Error("of an empty log something is known")
	}
	n.note(7, 3)
	n.note(8, 3)
	n.note(6, 2) // an older one says nothing
	for _, tc := range []struct {
		term, commit uint64
		want         bool
	}{{3, 6, false}, {3, 7, true}, {3, 9, true}, {2, 9, false}, {4, 9, false}} {
		if got := n.covers(tc.term, tc.commit); got != tc.want {
			t.Errorf("commit index %d of term %d: %v", tc.commit, tc.term, got)
		}
	}
	n.note(5, 3) // the snapshot ends with an entry of the same term
	if !n.covers(3, 5) {
		t.Error("the snapshot's last entry does not count")
	}
	n.cut(6)
	if !n.covers(3, 6) {
		t.Error("what is left was forgotten")
	}
	n.cut(5)
	if n.covers(3, 9) {
		t.Error("the entries are gone, and count")
	}
}

// After a restart the newest term is read from the log.
func TestNewestTermIsKnownAfterARestart(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		_, tn := oneStopped(t, cut)
		want := *tn.logs.term.Load()
		n, err := Open(tn.cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := n.logs.term.Load()
		n.Close()
		if got == nil || got.term != want.term || got.first < want.first || !cut && got.first != want.first {
			t.Errorf("cut %v: it is %+v, it was %+v", cut, got, want)
		}
	}
}
