package snapshot

import (
	"bytes"
	"testing"
)

// A note must go wherever the file goes: with a commit, alone, and into the file that is installed over it. One that was lost on the way
// would let an old copy of another file pass.
func TestNotesSurvive(t *testing.T) {
	dir := t.TempDir()
	note := ""
	o := Options{Note: func() []byte { return []byte(note) }}
	s := openTest(t, dir, o)
	again := func(what, want string) {
		t.Helper()
		s.Close()
		s = openTest(t, dir, o)
		if got := s.Note(); string(got) != want {
			t.Fatalf("%s: the file has the note %q, want %q", what, got, want)
		}
	}
	again("a new file", "")
	note = "alone"
	if err := s.SaveLocal(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Receipt(); ok {
		t.Error("SaveLocal made a receipt out of nothing")
	}
	again("written alone", "alone")
	note = "with a receipt"
	if err := s.SaveReceipt(Receipt{At: 5}); err != nil {
		t.Fatal(err)
	}
	again("with a receipt", note)
	note = "with a snapshot"
	commit(t, s, 1, 100, rec("a", "1", 200))
	again("with a snapshot", note)
	note = ""
	commit(t, s, 2, 100)
	again("nothing new", "with a snapshot")
	if r, ok := s.Receipt(); !ok || r.At != 5 {
		t.Errorf("the receipt is %+v", r)
	}

	from := openTest(t, t.TempDir(), Options{Note: func() []byte { return []byte("another node's") }})
	commit(t, from, 9, 100)
	m, b := stream(t, from)
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	again("an installed file, nothing new", "with a snapshot")
	commit(t, from, 10, 100)
	m, b = stream(t, from)
	note = "during the install"
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	again("an installed file", note)
	if bytes.Contains(b, []byte("another")) {
		t.Error("a note in a stream")
	}
}
