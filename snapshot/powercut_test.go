package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// bbolt writes the pages of a transaction, syncs, writes one meta page, and syncs. A power cut keeps any part of what was not synced.
// This takes the file before and after a commit and puts together what the disk may hold in between.
func TestWhateverAPowerCutKeepsOfACommit(t *testing.T) {
	const page = 4096
	rng := rand.New(rand.NewPCG(5, 6))
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	state := map[string]Record{}
	change := func(n int) (records []Record) {
		for range n {
			r := rec(fmt.Sprintf("key %04d", rng.IntN(1500)), fmt.Sprintf("state %d, of some length so that there are pages", rng.Int()), 1000)
			r.Deleted = rng.IntN(4) == 0
			records = append(records, r)
			if r.Deleted {
				delete(state, string(r.Name))
			} else {
				state[string(r.Name)] = r
			}
		}
		return records
	}
	now := func() map[string]string {
		m := map[string]string{}
		for _, r := range state {
			maps.Copy(m, want(r))
		}
		return m
	}
	cut := t.TempDir()
	disk := func(b []byte) (map[string]string, error) {
		if err := os.WriteFile(filepath.Join(cut, fileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := serve(cut)
		return got, err
	}
	commit(t, s, 1, 100, change(3000)...)
	found := 0
	for index := uint64(2); index < 12; index++ {
		older, before := now(), pagesInUse(t, s.Path())
		commit(t, s, index, 100, change(1+rng.IntN(60))...)
		newer, after := now(), pagesInUse(t, s.Path())
		var data, meta []int // the pages that the commit wrote
		for at := 0; at < len(after); at += page {
			if at < len(before) && bytes.Equal(before[at:at+page], after[at:at+page]) {
				continue
			}
			if at < 2*page {
				meta = append(meta, at)
			} else {
				data = append(data, at)
			}
		}
		if len(meta) != 1 || len(data) < 3 {
			t.Fatal("a commit that wrote", len(meta), "meta pages and", len(data), "others")
		}
		build := func(keep func() bool, meta ...int) (b []byte, lost int) {
			b = append(bytes.Clone(before), make([]byte, max(0, len(after)-len(before)))...)
			for _, at := range data {
				if keep() {
					copy(b[at:at+page], after[at:])
				} else {
					lost++
				}
			}
			for _, at := range meta {
				copy(b[at:at+page], after[at:])
			}
			return b, lost
		}
		for range 8 { // before the first sync has ended: some pages are there, some not, some in part
			b, _ := build(func() bool { return rng.IntN(2) == 0 })
			torn := data[rng.IntN(len(data))]
			copy(b[torn:torn+512*(1+rng.IntN(7))], after[torn:])
			if got, err := disk(b); err != nil || !maps.Equal(got, older) {
				t.Fatalf("commit %d, before its meta page: %v, %d records, not the %d of before", index, err, len(got), len(older))
			}
		}
		b, _ := build(func() bool { return true }, meta...)
		if got, err := disk(b); err != nil || !maps.Equal(got, newer) {
			t.Fatalf("commit %d, whole: %v, %d records, not %d", index, err, len(got), len(newer))
		}
		for range 8 { // a disk that says that it synced and did not: nothing can keep the commit, but it must not be served wrongly
			b, lost := build(func() bool { return rng.IntN(8) != 0 }, meta...)
			got, err := disk(b)
			switch {
			case errors.Is(err, ErrDamaged):
				found++
			case err != nil || !maps.Equal(got, newer):
				t.Fatalf("commit %d, %d pages lost: %v, %d records, not %d", index, lost, err, len(got), len(newer))
			}
		}
	}
	if found < 20 {
		t.Error("only", found, "lost pages were found: this test does not test")
	}
}
