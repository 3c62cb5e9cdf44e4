package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"limitd/fsm"
)

// One that is away and one that fills up are a majority of three.
func TestVotersThatDoNotAnswerCountAsLostWithThoseThatFillUp(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	a, b := c.others(l)[0], c.others(l)[1]
	a.Close()
	b.Close()
	for _, tt := range []struct {
		aLow, aGone, bLow, bGone bool
		want                     bool
	}{
		{},
		{aGone: true},
		{aLow: true},
		{aLow: true, aGone: true}, // it has stopped, full
		{aLow: true, bGone: true, want: true},
		{aLow: true, bLow: true, want: true},
		{aLow: true, aGone: true, bLow: true, want: true},
	} {
		said := func(low, gone bool) polledPeer {
			p := polledPeer{status: peerStatus{DiskLow: low}, heard: l.clock.Boot()}
			if gone {
				p.heard -= int64(unheard) + 1
			}
			return p
		}
		l.polled.mu.Lock()
		l.polled.peers = map[string]polledPeer{a.cfg.ID: said(tt.aLow, tt.aGone), b.cfg.ID: said(tt.bLow, tt.bGone)}
		l.polled.mu.Unlock()
		l.judgeDisks()
		if got := l.DiskLow(); got != tt.want {
			t.Errorf("%+v: charges are refused: %v", tt, got)
		}
	}
}

// smallDisk mounts a file system of size bytes. That needs root;
// LIMITD_REQUIRE_ROOT turns the skip into a failure.
func smallDisk(t testing.TB, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
		if os.Getenv("LIMITD_REQUIRE_ROOT") != "" {
			t.Fatal("mount: ", err)
		}
		t.Skip("NOT TESTED: a disk of its own needs root to mount a file system: ", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// logged is what a node logged.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// line says whether one line has all the words.
func (l *logged) line(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
lines:
	for line := range strings.Lines(l.b.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		return true
	}
	return false
}

// A follower that is far behind needs room for a second snapshot file. Until there
// is, it lives with what it has, and leaves nothing behind of its attempts.
func TestInstallOnAFullDiskSucceedsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3, func(cfg *Config) { cfg.TrailingBytes = 1 })
	victim := c.nodes[2]
	victim.cfg.LogStore = StoreBolt // the other one needs room at each start
	victim.cfg.DataDir = smallDisk(t, 32<<20)
	var said logged
	victim.cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
	for _, n := range c.nodes {
		c.start(n)
	}
	put(t, c.leader(), "before")
	c.converge()
	behind := victim.Status().LogLast
	victim.Close()
	patiently(t, "a file of some pages", func() bool { return tryMany(c.leader(victim), 0, 2*minTrailing, time.Hour) == fsm.Applied })
	patiently(t, "the logs to be cut down", func() bool { // of whoever may lead
		compact(c.leader(victim))
		cut := true
		for _, n := range c.others(victim) {
			n.takeSnapshot(n.raft.Load())
			cut = cut && n.Status().LogFirst > behind+1
		}
		return cut
	})

	filler := filepath.Join(victim.cfg.DataDir, "filler")
	if err := os.WriteFile(filler, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(victim.cfg.DataDir, &st); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filler, os.O_WRONLY, 0)
	if err == nil {
		err = unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-64<<10)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.start(victim)
	patiently(t, "the node to say that the snapshot finds no room", func() bool {
		return said.line("snapshot.new", "no space left on device")
	})
	put(t, c.leader(victim), "meanwhile")
	if err := victim.fatalReason(); err != nil {
		t.Fatal("it stopped: ", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	patiently(t, "it to get what was committed", func() bool { return has(victim, "meanwhile") }) // raft waits longer after each attempt that failed, up to 10 s
	c.converge()
	if _, err := os.Stat(filepath.Join(victim.cfg.DataDir, "snapshot.new")); !os.IsNotExist(err) {
		t.Errorf("the attempts left something behind: %v", err)
	}
}

// A full disk of the leader need not stop what the others can keep.
func TestLeaderWhoseDiskIsLowHandsOverToTheOneWithTheMostRoom(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	l := c.leader()
	put(t, l, "before")
	a, b := c.others(l)[0], c.others(l)[1]
	for _, tn := range c.nodes {
		eventually(t, tn.cfg.ID+" to have it", func() bool { return has(tn, "before") })
	}
	eventually(t, "the leader to hear of both", func() bool {
		_, ofA := l.polledPeer(a.cfg.ID)
		_, ofB := l.polledPeer(b.cfg.ID)
		return ofA && ofB
	})
	l.polled.mu.Lock()
	for id, free := range map[string]int64{a.cfg.ID: 1 << 50, b.cfg.ID: 1 << 51} {
		p := l.polled.peers[id]
		p.status.DiskFree, p.status.DiskLow = free, id == b.cfg.ID // b has more, and not enough
		l.polled.peers[id] = p
	}
	l.polled.mu.Unlock()
	if got := l.roomiest(); got != a.raftID {
		t.Fatalf("%s has the most room, want %s", got, a.raftID)
	}
	eventually(t, "another node to lead", func() bool {
		l.diskLow.Store(true)
		l.leadElsewhere()
		return !l.Leading() && (a.Leading() || b.Leading())
	})
	put(t, c.leader(l), "after")
}
