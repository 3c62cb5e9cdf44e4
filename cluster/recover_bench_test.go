package cluster

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"limitd/fsm"
	"limitd/snapshot"
)

// savedKeys writes a saved state of n keys as CL.THROTTLE has them.
func savedKeys(b *testing.B, n int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "saved")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	now := time.Now().UnixNano()
	w := snapshot.NewStreamWriter(f, snapshot.Header{Last: 9, T: now, ClusterID: [16]byte{1}, Generation: 1})
	for i := range n {
		expiry := now + int64(time.Hour) + int64(i)
		err := w.Put(snapshot.Record{
			Name:  snapshot.AppendName(nil, 0, fmt.Appendf(nil, "customer:%015d", i), []byte{1}),
			State: binary.LittleEndian.AppendUint64(nil, uint64(expiry)), Expiry: expiry,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// A node with a million keys, and a log with batches of 5,000 more.
func BenchmarkAMillionKeys(b *testing.B) {
	saved := savedKeys(b, 1_000_000)
	from := Member{ID: "n1", Peer: freeAddr(b)}
	restored := filepath.Join(b.TempDir(), "restored")
	b.Run("restore", func(b *testing.B) {
		for range b.N {
			os.RemoveAll(restored)
			if _, err := RestoreDir(saved, restored, from, StoreBolt); err != nil {
				b.Fatal(err)
			}
		}
	})
	n, err := Open(Config{ID: "n1", Members: []Member{from}, DataDir: restored, SnapshotInterval: time.Hour}, nil)
	if err == nil {
		err = n.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	for batch := range 8 {
		var turn fsm.Turn
		eventually(b, "a turn", func() (ok bool) {
			turn, err = n.Begin()
			return err == nil
		})
		var effects []fsm.Effect
		for i := range 5000 {
			effects = append(effects, fsm.Effect{Op: fsm.OpReplace, Key: fmt.Appendf(nil, "new:%d:%d", batch, i), Ident: []byte{1}, State: []byte("12345678"), Expiry: turn.At + int64(time.Hour)})
		}
		if _, o := n.Commit(fsm.AppendEntry(nil, turn, effects)); o != fsm.Applied {
			b.Fatal(o)
		}
	}
	if err := n.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("inspect", func(b *testing.B) {
		for range b.N {
			if _, err := Inspect(restored); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("recover", func(b *testing.B) {
		for range b.N {
			r, err := Recover(restored, Member{ID: "n1", Peer: freeAddr(b)})
			if err != nil || r.Records != 1_040_000 {
				b.Fatalf("%+v, %v", r, err)
			}
		}
	})
}
