package fsm

import (
	"bytes"
	"testing"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// A record that changes while a snapshot is written is in that snapshot as it was, and in the next one as it is, in each way a
// record can change and each way a snapshot can end.
func TestChangesWhileASnapshotIsWritten(t *testing.T) {
	const life = int64(1<<62 + 0x0102030405)
	start := []Effect{
		setCluster(1, 1), replace("a", "12345678", life), replace("b", "b", life), replace("tat", string(le64(life)), life),
		replace("short", "s", 50), {Op: OpReplace, NS: 1, Key: []byte("other"), Ident: []byte{1}, State: []byte("o"), Expiry: life},
	}
	for name, change := range map[string][]Effect{
		"nothing":              {},
		"replace":              {replace("a", "87654321", life)},
		"replace, larger":      {replace("a", string(make([]byte, 1000)), life)},
		"replace by a time":    {replace("a", string(le64(life-1)), life-1)},
		"splice":               {splice("a", 1, "9", life-2)},
		"splice that cuts":     {cut("a", 1, 2, "9", life-2)},
		"cut, larger":          {cut("a", 1, 2, string(make([]byte, 1000)), life-2)},
		"cut of a time":        {cut("tat", 3, 1, "1", life-3)},
		"splice, larger":       {splice("a", 1, string(make([]byte, 1000)), life-2)},
		"splice of a time":     {splice("tat", 3, "123456789012345678901234567890", life-3)},
		"delete":               {{Op: OpDelete, Key: []byte("a"), Ident: []byte{1}}},
		"delete and come back": {{Op: OpDelete, Key: []byte("a"), Ident: []byte{1}}, replace("a", "again", life)},
		"clear":                {{Op: OpClear}},
		"clear and come back":  {{Op: OpClear}, replace("b", "again", life), replace("new", "n", life)},
		"clear another":        {{Op: OpClear, NS: 1}},
		"clear all":            {{Op: OpClearAll}, replace("b", "again", life)},
		"new":                  {replace("new", "n", life), replace("brief", "n", 70)},
	} {
		for _, when := range []string{"before", "during"} {
			for _, end := range []string{"written", "never persisted", "refused"} {
				t.Run(name+" "+when+", "+end, func(t *testing.T) {
					entries := [][]Effect{start, nil, {replace("a", "87654321", life), replace("b", "bbbb", life)}, nil}
					if when == "before" {
						entries[1] = change
					} else {
						entries[3] = change
					}
					changeDuring(t, entries, end)
				})
			}
		}
	}
}

// changeDuring writes a snapshot after entry 1, begins one after entry 3, applies entry 4, and ends it.
func changeDuring(t *testing.T, entries [][]Effect, end string) {
	s := openStore(t, t.TempDir())
	f := New(s)
	apply(t, f, 1, 1, entries[0]...)
	if err := persist(t, f, s, 1); err != nil {
		t.Fatal(err)
	}
	apply(t, f, 2, 2, entries[1]...)
	apply(t, f, 3, 3, entries[2]...)
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Snapshot(); err == nil {
		t.Error("two snapshots at a time")
	}
	apply(t, f, 4, 60, entries[3]...)
	f.Sweep(1 << 20)
	k, err := s.Create(1, 3, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	records, logBytes := f.Pending()
	if !f.Saves().Running {
		t.Error("no snapshot is said to be written")
	}
	switch end {
	case "written":
		if err := snap.Persist(k); err != nil {
			t.Fatal(err)
		}
	case "refused":
		k.Cancel()
		if err := snap.Persist(k); err == nil {
			t.Fatal("a closed sink was accepted")
		}
	}
	snap.Release()
	if s := f.Saves(); s.Running || s.Failed != (end != "written") {
		t.Errorf("after the end (%s): %+v", end, s)
	}
	n, b := f.Pending()
	if end == "written" {
		if n != records || b != logBytes {
			t.Errorf("pending: %d records, %d bytes; before the end %d, %d", n, b, records, logBytes)
		}
		sameStream(t, s, entries[:3])
	} else if b <= logBytes {
		t.Errorf("pending: %d bytes; before the failure %d", b, logBytes)
	}
	if err := persist(t, f, s, 4); err != nil {
		t.Fatal(err)
	}
	if s := f.Saves(); s.Running || s.Failed || s.Saved.IsZero() {
		t.Errorf("after all is written: %+v", s)
	}
	if n, b := f.Pending(); n != 0 || b != 0 {
		t.Errorf("pending after all is written: %d, %d", n, b)
	}
	sameStream(t, s, entries)
}

// sameStream compares the file with one that a node writes which applied the same entries and made only one snapshot.
func sameStream(t *testing.T, s *snapshot.Store, entries [][]Effect) {
	t.Helper()
	other := openStore(t, t.TempDir())
	g := New(other)
	for i, at := range []int64{1, 2, 3, 60}[:len(entries)] {
		apply(t, g, uint64(i+1), at, entries[i]...)
	}
	if err := persist(t, g, other, uint64(len(entries))); err != nil {
		t.Fatal(err)
	}
	if got, want := streamOf(t, s), streamOf(t, other); !bytes.Equal(got, want) {
		t.Errorf("at %d the file has\n%q, want\n%q", len(entries), got, want)
	}
}
