package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// withWal is the setting of nodes that keep their log in segments.
const withWal = "[raft]\nlog_store = \"wal\"\n"

// walDir is where they do: meta.db, and the segments.
const walDir = "raft.wal"

// wal are the contents of its files, by name.
type wal map[string][]byte

func readWal(t testing.TB, data string) wal {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(data, walDir, "*"))
	if err != nil || len(paths) < 2 {
		t.Fatal(paths, err)
	}
	fs := wal{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fs[filepath.Base(path)] = b
	}
	return fs
}

// write puts the files in the place of those that are there.
func (w wal) write(t testing.TB, data string) {
	t.Helper()
	dir := filepath.Join(data, walDir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range w {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// holding are the names of the files that hold something, the newest segment last.
func (w wal) holding() (names []string) {
	for name, b := range w {
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

// walDamages are the ways in which the files of a wal come back wrong; old are those
// of before the last start. Those at a chosen place are made n times.
func walDamages(now, old wal, n int) (all []damage) {
	change := func(file, name string, refused bool, of func(now []byte) []byte) {
		all = append(all, damage{file: file, name: name, refused: refused, of: func(b, _ []byte) []byte { return of(b) }})
	}
	for _, file := range now.holding() {
		change(file, "missing", true, func([]byte) []byte { return nil })
		change(file, "empty", true, func([]byte) []byte { return []byte{} })
		change(file, "cut in the middle", true, func(b []byte) []byte { return b[:used(b)/2] })
		change(file, "first page zero", true, func(b []byte) []byte { // not the newest one: it may never have been written
			b = bytes.Clone(b)
			clear(b[:min(pageSize, len(b))])
			return b
		})
		for i := range n {
			change(file, fmt.Sprintf("a flipped bit, %d", i), false, func(b []byte) []byte { return flipBit(rand.New(rand.NewPCG(3, uint64(i))))(b, nil) })
			change(file, fmt.Sprintf("a flipped bit near the end, %d", i), false, func(b []byte) []byte {
				rng := rand.New(rand.NewPCG(4, uint64(i)))
				from := max(used(b)-300, 0)
				return append(bytes.Clone(b[:from]), flipBit(rng)(b[from:], nil)...)
			})
		}
		if before, ok := old[file]; ok && !bytes.Equal(before, now[file]) {
			change(file, "an old copy", true, func([]byte) []byte { return before })
		}
	}
	return all
}

// A single node with a wal has nobody to ask, as one with the other store: it refuses,
// or has forgotten nothing.
func TestDamagedWalOfASingleNode(t *testing.T) {
	t.Parallel()
	for how, stop := range map[string]func(*process){"stopped": (*process).terminate, "killed": (*process).kill} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			damageWal(t, stop)
		})
	}
}

func damageWal(t *testing.T, stop func(*process)) {
	c := newCluster(t, 1, withWal)
	nd := c.nodes[0]
	const limit, keys = 100, 150 // three pages
	charge := func() {
		for i := range keys {
			nd.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 1)
		}
	}
	c.start(nd)
	c.awaitDecides(nd)
	charge()
	stop(nd.process)
	old := readWal(t, nd.data)
	c.start(nd)
	c.awaitDecides(nd)
	charge()
	stop(nd.process)
	now := readWal(t, nd.data)
	whole := readFiles(t, nd.data)
	n := 5
	if testing.Short() {
		n = 1
	}
	outcomes := map[string]int{}
	try := func(d damage, files wal) {
		whole.write(t, nd.data)
		files.write(t, nd.data)
		c.start(nd)
		if refused(t, nd, d) {
			outcomes[d.file+" refused"]++
			d.file = walDir // it may be another file in it that does not fit any more
			c.checkRefusal(nd, d)
			if last := tail(nd.out.String(), 1); !strings.Contains(last, "--log-store wal`") {
				t.Errorf("%v: what it says to type would make a node with the other store: %s", d, last)
			}
			if after := readWal(t, nd.data); len(files) > 1 && !sameFiles(files, after) {
				t.Errorf("%v: the refused start has changed files", d)
			}
			return
		}
		outcomes[d.file+" harmless"]++
		if d.refused {
			t.Errorf("%v: it was taken for whole", d)
		}
		for i := range keys {
			if r := nd.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 0); r[2] != limit-2 {
				t.Errorf("%v: key:%d has %d left, want %d", d, i, r[2], limit-2)
				break
			}
		}
		nd.kill()
	}
	for _, d := range walDamages(now, old, n) {
		files := wal{}
		for name, b := range now {
			files[name] = b
		}
		if b := d.of(now[d.file], nil); b == nil {
			delete(files, d.file)
		} else {
			files[d.file] = b
		}
		try(d, files)
	}
	try(damage{file: "", name: "an old copy of all", refused: true}, old)
	try(damage{file: "", name: "nothing at all"}, now)
	t.Log(outcomes)
}

func sameFiles(a, b wal) bool {
	if len(a) != len(b) {
		return false
	}
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			return false
		}
	}
	return true
}

// Three nodes with a wal, killed one after the other and all at once, again and again,
// under load: no admission that was answered is forgotten.
func TestKilledNodesThatKeepAWal(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	c := newCluster(t, 3, withWal)
	for _, nd := range c.nodes {
		c.start(nd)
	}
	const limit = int64(1_000_000)
	for round := range rounds {
		for _, nd := range c.nodes {
			c.awaitDecides(nd)
		}
		key := fmt.Sprintf("round:%d", round)
		l := startLoad(t, key, limit, 8, c.nodes[0].resp, c.nodes[1].resp, c.nodes[2].resp)
		answers := func(n int64) {
			eventually(t, 20*time.Second, "answers", func() bool { return l.answers() > n })
		}
		answers(200)
		victim := c.nodes[round%3]
		victim.kill()
		c.start(victim)
		answers(400)
		for _, nd := range c.nodes {
			nd.kill()
		}
		l.end()
		for _, nd := range c.nodes {
			c.start(nd)
		}
		for _, nd := range c.nodes {
			c.awaitDecides(nd)
		}
		all := l.sum()
		t.Logf("round %d: %v", round, all)
		checkCount(t, c.nodes[0].r, key, limit, all)
		c.awaitSameHash(c.nodes...)
	}
}

// A sync of a segment, or of what names them, that fails once stops the node, and so does
// a disk without room; started again, it goes on.
func TestFailedWriteToAWalStopsTheNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED in the short form: the default log store is")
	}
	c := newCluster(t, 3, withWal)
	for _, nd := range c.nodes {
		c.start(nd)
	}
	for _, nd := range c.nodes {
		c.awaitDecides(nd)
	}
	for fault, words := range map[string][]string{
		"fdatasync:error=EIO:when=1": {"input/output error", "dmesg"},
		"pwrite64:error=ENOSPC":      {"no space left on device", "free space there"},
	} {
		for who, pick := range c.victims() {
			t.Run(fault+" "+who, func(t *testing.T) {
				victim := pick()
				tr := startTraffic(t, 2, keysOf(fault+who), c.others(victim)...)
				names := readWal(t, victim.data).holding()
				inject(t, victim, filepath.Join(walDir, names[len(names)-1]), fault)
				stopsItself(t, victim, append(words, walDir)...)
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
