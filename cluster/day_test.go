package cluster

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"limitd/fsm"
)

// held is what a node holds: Go's heap after a collection, and its files up to the
// last page in use.
type held struct{ heap, log, snapshot int64 }

func (h held) String() string {
	return fmt.Sprintf("heap %d KiB, log %d KiB, snapshot %d KiB", h.heap>>10, h.log>>10, h.snapshot>>10)
}

func (tn *testNode) held(t *testing.T) held {
	runtime.GC()
	runtime.GC() // what the first one let go of by finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return held{int64(m.HeapAlloc), tn.logSize(t), highWater(t, tn.snapshots().Path())}
}

func (tn *testNode) logSize(t *testing.T) (size int64) {
	path := logPath(tn.cfg.DataDir, tn.cfg.LogStore)
	if tn.cfg.LogStore == StoreBolt {
		return highWater(t, path)
	}
	for name := range dirContents(t, path) {
		fi, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			t.Fatal(err)
		}
		size += fi.Size()
	}
	return size
}

// highWater is the end of the last page that a bbolt file has in use, by the newer
// one of its meta pages.
func highWater(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var pages, newest uint64
	for i := range int64(2) {
		var meta [16 + 64]byte
		if _, err := file.ReadAt(meta[:], i*int64(os.Getpagesize())); err != nil {
			t.Fatal(err)
		}
		ne := binary.NativeEndian
		if txid := ne.Uint64(meta[16+48:]); i == 0 || txid > newest {
			newest, pages = txid, ne.Uint64(meta[16+40:])
		}
	}
	return int64(pages) * int64(os.Getpagesize())
}

// A node that has run for a day holds what it held after six hours, when its log had
// reached its length: keys come and expire, snapshots are taken, the log is compacted.
func TestADayLeavesANodeAsItWas(t *testing.T) { // alone: it looks at the heap
	c := startTestCluster(t, 1, func(cfg *Config) { cfg.TrailingBytes = 1 })
	n := c.leader()
	const step, keys, entries = 10 * time.Minute, 100, 45 // 1024 entries stay, which takes 4 hours
	var early, late held
	for at := step; at <= 24*time.Hour; at += step {
		n.clock.boot.Add(int64(step))
		first := int(at/step) * keys
		turn, err := n.Begin()
		if err != nil {
			t.Fatal(err)
		}
		effects := make([]fsm.Effect, keys)
		for i := range effects {
			effects[i] = fsm.Effect{
				Op: fsm.OpReplace, Key: fmt.Appendf(nil, "session:%016x", uint64(first+i)*0x9e3779b97f4a7c15), Ident: []byte{1},
				State: []byte("state"), Expiry: turn.At + int64(i%60+1)*int64(time.Minute),
			}
		}
		if _, o := n.Commit(fsm.AppendEntry(nil, turn, effects)); o != fsm.Applied {
			t.Fatal(o)
		}
		fillLog(n, entries)
		n.fsm.Sweep(1 << 20)
		if err := n.takeSnapshot(n.raft.Load()); err != nil {
			t.Fatal(err)
		}
		switch at {
		case 6 * time.Hour:
			early = n.held(t)
		case 24 * time.Hour:
			late = n.held(t)
		}
	}
	t.Logf("after 6 hours: %s; after 24: %s", early, late)
	grew := func(late, early int64) bool { return late > early*6/5+256<<10 }
	if grew(late.heap, early.heap) || grew(late.log, early.log) || grew(late.snapshot, early.snapshot) {
		t.Errorf("it grew: after 6 hours %s, after 24 %s", early, late)
	}
	if first, _ := n.logs.FirstIndex(); first == 1 {
		t.Error("the log was never compacted")
	}
}
