package fsm

import (
	"testing"

	"github.com/hashicorp/raft"
)

func TestTheGenerationIsPartOfWhatIsSaved(t *testing.T) {
	s := openStore(t, t.TempDir())
	f := New(s)
	apply(t, f, 1, 5, setCluster(1, 3), replace("k", "v", 100))
	f.SetGeneration(4)
	if err := persist(t, f, s, 1); err != nil {
		t.Fatal(err)
	}
	g := New(s)
	if err := g.Restore(open(t, s)); err != nil {
		t.Fatal(err)
	}
	if st := g.State(); st.Generation != 4 || st.ClusterID != f.State().ClusterID {
		t.Errorf("it came back as %+v", st)
	}
}

func TestCountTakesWhatIsAliveOnly(t *testing.T) {
	f := New(nil)
	apply(t, f, 1, 5, setCluster(1, 1))
	for i := range 1000 {
		apply(t, f, uint64(2+i), 5, replace(string(rune('a'+i)), "v", 100+int64(i%2)*100))
	}
	apply(t, f, 1002, 150)
	if n := f.Count(); n != 500 {
		t.Errorf("%d records, 500 are alive", n)
	}
}

func TestBaseOfAnEntry(t *testing.T) {
	e := AppendEntry(nil, Turn{Base: 77, Term: 2, At: 5}, nil)
	if base, ok := EntryBase(e); !ok || base != 77 {
		t.Errorf("base %d, %v", base, ok)
	}
	for _, b := range [][]byte{nil, e[:10], raft.EncodeConfiguration(raft.Configuration{})} {
		if base, ok := EntryBase(b); ok {
			t.Errorf("%x has the base %d", b, base)
		}
	}
}
