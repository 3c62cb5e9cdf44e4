//go:build mutant

package fsm

import (
	"testing"
	"time"

	"limitd/mutant"
)

func choose(t *testing.T, name string) {
	mutant.Choose(name)
	t.Cleanup(func() { mutant.Choose("") })
}

func TestDefectOfTheGuardShows(t *testing.T) {
	choose(t, "void-batch-applied")
	f := New(nil)
	apply(t, f, 1, 5)
	apply(t, f, 2, 6)
	r := f.Apply(logOf(3, Turn{Base: 1, Term: 1, At: 7}, replace("k", "stale", 100))).(Result)
	if r.Outcome != Applied || get(f, 0, "k") != "stale" {
		t.Errorf("%v, k is %s", r.Outcome, get(f, 0, "k"))
	}
}

func TestDefectsOfTimeShow(t *testing.T) {
	choose(t, "no-clamp-of-t")
	f := New(nil)
	apply(t, f, 1, 9)
	apply(t, f, 2, 6)
	if f.Time() != 6 {
		t.Errorf("time is %d, not back at 6", f.Time())
	}
	mutant.Choose("local-clock-in-apply")
	at := time.Now().Add(-time.Hour).UnixNano()
	f, g := New(nil), New(nil)
	apply(t, f, 1, at)
	apply(t, g, 1, at)
	if f.Time() == at || f.Time() == g.Time() {
		t.Errorf("two machines that applied the same have the times %d and %d of the entry's %d", f.Time(), g.Time(), at)
	}
}

func TestDefectOfSnapshotsShows(t *testing.T) {
	choose(t, "last-not-in-snapshot")
	s := openStore(t, t.TempDir())
	f := New(s)
	apply(t, f, 1, 5, setCluster(1, 3), replace("k", "v", 100))
	if err := persist(t, f, s, 1); err != nil {
		t.Fatal(err)
	}
	g := New(s)
	if err := g.Restore(open(t, s)); err != nil {
		t.Fatal(err)
	}
	if st := g.State(); st.Last != 0 || st.Applied != 1 || st.Chain != f.State().Chain {
		t.Errorf("it came back as %+v", st)
	}
}
