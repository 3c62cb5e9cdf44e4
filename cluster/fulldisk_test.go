package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"limitd/fsm"
)

// replaceFile puts another file under the descriptor by which this process holds
// the file at path, until undo is called.
func replaceFile(t testing.TB, path string, by *os.File) (undo func()) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		to, _ := os.Readlink(link)
		fd, err := strconv.Atoi(filepath.Base(link))
		if to != path || err != nil || fd == int(by.Fd()) {
			continue
		}
		kept, err := unix.Dup(fd)
		if err == nil {
			err = unix.Dup3(int(by.Fd()), fd, unix.O_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := errors.Join(unix.Dup3(kept, fd, unix.O_CLOEXEC), unix.Close(kept)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("not open: ", path)
	return nil
}

// fill makes every write to the open file at path fail as on a full disk, until
// drain is called.
func fill(t testing.TB, path string) (drain func()) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	return replaceFile(t, path, full)
}

func TestFullDiskUnderTheLogStopsTheNodeUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			c := startTestCluster(t, 3)
			l := c.leader()
			put(t, l, "before")
			victim := l
			if who == "follower" {
				victim = c.others(l)[0]
			}
			drain := fill(t, victim.logFile(t))
			if _, o := tryPut(l, "meanwhile"); who == "leader" && o != fsm.Unknown {
				t.Errorf("a batch that found no room is %v, want unknown", o)
			}
			eventually(t, "the node to stop", func() bool { return victim.fatalReason() != nil })
			reason := victim.fatalReason()
			for _, words := range []string{victim.logs.path, "no space left on device", "free space there, then start this node again"} {
				if !strings.Contains(reason.Error(), words) {
					t.Errorf("the reason does not say %q: %v", words, reason)
				}
			}
			put(t, c.leader(victim), "after")
			drain()
			victim.Close()
			c.start(victim)
			c.converge()
			if !has(victim, "before") || !has(victim, "after") {
				t.Error("it came back without what was committed")
			}
		})
	}
}

// The snapshot can wait, and the receipt too: with room again the node goes on
// without a restart.
func TestFullDiskUnderTheSnapshotFileStopsNothing(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	n := c.leader()
	put(t, n, "before")
	eventually(t, "the first receipt to be on disk", func() bool { _, ok := n.snapshots().Receipt(); return ok })
	drain := fill(t, n.snapshots().Path())
	if _, err := n.SaveSnapshot(); err == nil || !strings.Contains(err.Error(), n.snapshots().Path()+": no space left on device") {
		t.Errorf("a snapshot on a full disk: %v", err)
	}
	n.clock.boot.Add(2 * int64(receiptEvery))
	put(t, n, "during") // with a newer receipt
	if err := n.keepReceipt(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a receipt on a full disk: %v", err)
	}
	put(t, n, "still going on")
	drain()
	if err := n.keepReceipt(); err != nil {
		t.Errorf("a receipt when there is room again: %v", err)
	}
	if _, err := n.SaveSnapshot(); err != nil {
		t.Errorf("a snapshot when there is room again: %v", err)
	}
	if err := n.fatalReason(); err != nil {
		t.Error("it stopped: ", err)
	}
}

// After a failed sync nobody knows what the file holds.
func TestFailedDiskUnderTheSnapshotFileStopsTheNode(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	victim := c.others(l)[0]
	put(t, l, "before")
	c.converge()
	unwritable, err := os.Open(victim.snapshots().Path())
	if err != nil {
		t.Fatal(err)
	}
	defer unwritable.Close()
	replaceFile(t, victim.snapshots().Path(), unwritable)
	if _, err := victim.SaveSnapshot(); err == nil {
		t.Fatal("a snapshot was written to a disk that fails")
	}
	stopsBecause(t, victim, victim.snapshots().Path())
	put(t, l, "after")
}

// logFile is the file to which the node writes its log.
func (tn *testNode) logFile(t *testing.T) string {
	t.Helper()
	if tn.cfg.LogStore == StoreBolt {
		return tn.logs.path
	}
	segments := segmentsOf(t, tn.cfg.DataDir)
	return segments[len(segments)-1]
}
