package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withBolt is the setting of nodes that keep their log in one bbolt file.
const withBolt = "[raft]\nlog_store = \"bolt\"\n"

// log is the file that a node with a wal writes its next entries to.
func (nd *node) log(t testing.TB) string { return readFiles(t, nd.data).named(newestSegment) }

// holding are the names of the files of a wal that hold something, the newest segment last.
func (fs files) holding() (names []string) {
	for name, b := range fs.in(walDir) {
		if used(b) > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { // meta.db first
		if d := strings.Compare(filepath.Ext(a), filepath.Ext(b)); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}

// Files of a wal, whatever they are called.
const (
	metaFile      = walDir + "/meta.db"
	oldestSegment = walDir + "/oldest"
	newestSegment = walDir + "/newest"
)

// named is the file that is meant.
func (fs files) named(file string) string {
	names := fs.holding() // meta.db, and at least one segment
	switch file {
	case oldestSegment:
		return names[1]
	case newestSegment:
		return names[len(names)-1]
	}
	return file
}

// walDamages are the ways in which the files of a node with a wal come back wrong; old are
// those of before the last start. Those at a chosen place are made several times.
func walDamages(t testing.TB, now, old files) []damage {
	n := 5
	if testing.Short() {
		n = 1
	}
	all := []damage{
		{walDir, "an old copy of all", nil, true},
		{walDir, "nothing at all", func(now, _ []byte) []byte { return now }, false},
	}
	for _, file := range []string{metaFile, oldestSegment, newestSegment} {
		if file == oldestSegment && len(now.holding()) < 3 {
			continue
		}
		change := func(name string, refused bool, of func(now []byte) []byte) {
			all = append(all, damage{file, name, func(now, _ []byte) []byte { return of(now) }, refused})
		}
		change("missing", true, func([]byte) []byte { return nil })
		change("empty", true, func([]byte) []byte { return []byte{} })
		change("cut in the middle", true, func(b []byte) []byte { return b[:used(b)/2] })
		// The newest one may have no more than that, and then looks as if it was never written.
		change("first page zero", file != newestSegment, func(b []byte) []byte {
			b = bytes.Clone(b)
			clear(b[:min(pageSize, len(b))])
			return b
		})
		for i := range n {
			change(fmt.Sprintf("a flipped bit, %d", i), false, func(b []byte) []byte { return flipBit(rand.New(rand.NewPCG(3, uint64(i))))(b, nil) })
			change(fmt.Sprintf("a flipped bit near the end, %d", i), false, func(b []byte) []byte {
				rng := rand.New(rand.NewPCG(4, uint64(i)))
				from := max(used(b)-300, 0)
				return append(bytes.Clone(b[:from]), flipBit(rng)(b[from:], nil)...)
			})
		}
		if name := now.named(file); old[name] != nil && !bytes.Equal(old[name], now[name]) {
			all = append(all, damage{file, "an old copy", func(_, old []byte) []byte { return old }, true})
		}
	}
	for _, d := range someDamages(t, 1, 0) {
		if d.file != logFile {
			all = append(all, d)
		}
	}
	return all
}

// checkRefusalOfWal wants the line that makes a node with this log store, and the files
// as they were before the start.
func checkRefusalOfWal(nd *node, d damage, before files) {
	nd.t.Helper()
	checkRefusal(nd, d)
	was, is := before.in(walDir), readFiles(nd.t, nd.data).in(walDir)
	if len(was) > 1 && !maps.EqualFunc(was, is, bytes.Equal) {
		nd.t.Errorf("%v: the refused start has changed files", d)
	}
}

// Three nodes with bolt, killed one after the other and all at once, again and again,
// under load: no admission that was answered is forgotten.
func TestKilledNodesWithBolt(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	c := newCluster(t, 3, withBolt)
	c.endings(rounds, func(round int, answers func(int64)) {
		answers(200)
		victim := c.nodes[round%3]
		victim.kill()
		c.start(victim)
		answers(400)
		for _, nd := range c.nodes {
			nd.kill()
		}
	})
}

// A sync of raft.db that fails once stops the node, and so does a disk without room; started
// again, it goes on.
func TestFailedWriteWithBoltStopsTheNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED in the short form: the default log store is")
	}
	c := newCluster(t, 3, withBolt)
	c.startAll()
	for fault, words := range map[string][]string{
		"fdatasync:error=EIO:when=1": {"input/output error", "dmesg"},
		"pwrite64:error=ENOSPC":      {"no space left on device", "free space there"},
	} {
		for who, pick := range c.victims() {
			t.Run(fault+" "+who, func(t *testing.T) {
				victim := pick()
				tr := startTraffic(t, 2, keysOf(fault+who), c.others(victim)...)
				inject(t, victim, logFile, fault)
				stopsItself(t, victim, append(words, logFile)...)
				tr.flows("without the node whose disk failed")
				c.start(victim)
				c.awaitDecides(victim)
				tr.flows("with it again")
				tr.check(victim)
				c.awaitSameHash(c.nodes...)
				soonReplaced(t, tr)
			})
		}
	}
}
