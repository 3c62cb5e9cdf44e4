package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// someDamages are all kinds, and those at a chosen place n times; with -short every
// fourth kind from the first on.
func someDamages(t testing.TB, n, first int) (some []damage) {
	if !testing.Short() {
		return damages(t, n)
	}
	all := damages(t, 1)
	for i := first; i < len(all); i += 4 {
		some = append(some, all[i])
	}
	return some
}

// One node of three comes back with a damaged file, again and again, under load: the
// cluster goes on, and the node refuses with the file's name and what mends it, or
// is what it was. The sum says that nothing was forgotten.
func TestDamagedNodeUnderLoad(t *testing.T) {
	t.Parallel()
	damageUnderLoad(t, logStores["wal"])
}

func TestDamagedNodeWithBoltUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED in the short form: the default log store is")
	}
	damageUnderLoad(t, logStores["bolt"])
}

func damageUnderLoad(t *testing.T, store logStore) {
	c := newCluster(t, 3, store.settings)
	c.startAll()
	tr := startTraffic(t, 1, twoKeys, c.nodes...)
	victim := c.others(c.leader())[1]
	if _, stderr, code := limitd(t, "snapshot", "save", "--addr", victim.resp); code != 0 {
		t.Fatalf("snapshot save: %s", stderr)
	}
	tr.flows("after the first snapshot")
	victim.terminate()
	old := readFiles(t, victim.data)
	c.start(victim)
	c.awaitDecides(victim)
	tr.flows("after the copy")
	victim.terminate()
	damages := store.damages(t, readFiles(t, victim.data), old)
	c.start(victim)
	c.awaitDecides(victim)

	outcomes := map[string]int{}
	for i, d := range damages {
		if i%2 == 0 {
			victim.terminate()
		} else {
			victim.kill()
		}
		whole := readFiles(t, victim.data)
		d.on(t, victim.data, old)
		before := readFiles(t, victim.data)
		c.start(victim)
		if refused(t, victim, d) {
			outcomes[d.file+" refused"]++
			store.refused(victim, d, before)
			whole.write(t, victim.data)
			c.start(victim)
			c.awaitDecides(victim)
		} else {
			outcomes[d.file+" rebuilt or harmless"]++
			if d.refused {
				t.Errorf("%v: %s was taken for whole", d, victim.id)
			}
		}
	}
	t.Log(outcomes)
	tr.flows("after all damages")
	c.awaitSameHash(c.nodes...)
	tr.check(victim)
}

// A leader that comes back damaged finds another one.
func TestDamagedLeaderUnderLoad(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	tr := startTraffic(t, 1, twoKeys, c.nodes...)
	victim := c.leader()
	victim.kill()
	c.ruin(t, victim)
	tr.flows("without the leader")
	tr.flows("after the refusal")
	tr.check(c.leader())
}

// logStore is how the files of a single node with one of the log stores come back wrong.
type logStore struct {
	settings string
	keys     int  // to be charged
	saved    bool // the snapshot file is written too, so that there is one to damage
	damages  func(t testing.TB, whole, old files) []damage
	refused  func(nd *node, d damage, before files) // looks at a refusal
}

var logStores = map[string]logStore{
	"wal":  {"", 150, false, walDamages, checkRefusalOfWal}, // of three pages
	"bolt": {withBolt, 50, true, func(t testing.TB, _, _ files) []damage { return someDamages(t, 2, 1) }, func(nd *node, d damage, _ files) { checkRefusal(nd, d) }},
}

// A single node has nobody to ask: what its log does not give back is lost, and it
// must say so, and never have admitted less than it did.
func TestDamagedFilesOfASingleNode(t *testing.T) {
	t.Parallel()
	for name, store := range logStores {
		for how, stop := range map[string]func(*process){"stopped": (*process).terminate, "killed": (*process).kill} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				damageSingleNode(t, store, stop)
			})
		}
	}
}

func damageSingleNode(t *testing.T, store logStore, stop func(*process)) {
	c := newCluster(t, 1, store.settings)
	c.startAll()
	nd := c.nodes[0]
	const limit = 100
	charge := func() {
		for i := range store.keys {
			nd.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 1)
		}
	}
	charge()
	if store.saved {
		if _, stderr, code := limitd(t, "snapshot", "save", "--addr", nd.resp); code != 0 {
			t.Fatalf("snapshot save: %s", stderr)
		}
	}
	stop(nd.process)
	old := readFiles(t, nd.data)
	c.start(nd)
	c.awaitDecides(nd)
	charge()
	stop(nd.process)
	whole := readFiles(t, nd.data)
	outcomes := map[string]int{}
	for _, d := range store.damages(t, whole, old) {
		whole.write(t, nd.data)
		d.on(t, nd.data, old)
		before := readFiles(t, nd.data)
		c.start(nd)
		if refused(t, nd, d) {
			outcomes[d.file+" refused"]++
			store.refused(nd, d, before)
			continue
		}
		outcomes[d.file+" rebuilt or harmless"]++
		if d.refused {
			t.Errorf("%v: it was taken for whole", d)
		}
		for i := range store.keys {
			if r := nd.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 0); r[2] != limit-2 {
				t.Errorf("%v: key:%d has %d left, want %d", d, i, r[2], limit-2)
				break
			}
		}
		nd.kill()
	}
	t.Log(outcomes)
}

// refused says whether the node ended by itself (with an error) rather than deciding.
func refused(t *testing.T, nd *node, d damage) bool {
	t.Helper()
	ended := false
	eventually(t, 20*time.Second, fmt.Sprintf("%v: %s refuses or decides", d, nd.id), func() bool {
		if !nd.running() {
			ended = true
			return true
		}
		_, err := nd.r.throttle("limitd:ready", 0, 1, 1, 0)
		return err == nil
	})
	return ended
}

// checkRefusal wants the name of the file, what mends it, and no panic.
func checkRefusal(nd *node, d damage) {
	nd.t.Helper()
	if code := nd.exitCode(); code != 2 && code != 3 {
		nd.t.Errorf("%v: %s ended with code %d:\n%s", d, nd.id, code, tail(nd.out.String(), 20))
	}
	text := nd.out.String()
	if strings.Contains(text, "goroutine ") {
		nd.t.Errorf("%v: %s panicked:\n%s", d, nd.id, tail(text, 40))
	}
	last := tail(text, 1)
	mends := "`limitd cluster remove " + nd.id + " --addr "
	file := d.file
	if filepath.Dir(file) == walDir {
		file = walDir // it may be another file in it that does not fit any more
	}
	for _, want := range []string{file, mends, "`limitd snapshot restore ", "mv " + nd.data + " "} {
		if !strings.Contains(last, want) {
			nd.t.Errorf("%v: the refusal does not say %q:\n%s", d, want, last)
		}
	}
}
