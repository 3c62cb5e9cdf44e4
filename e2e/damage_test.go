package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A damaged file is named, or rebuilt from what is whole, and never served.
func TestDamagedFilesOfAFollower(t *testing.T) {
	c := startCluster(t, 3)
	damageFiles(t, c, c.others(c.leader())[1])
}

// A single node has nobody to ask; what its log does not give back is lost, and it must say so.
func TestDamagedFilesOfASingleNode(t *testing.T) {
	c := startCluster(t, 1)
	damageFiles(t, c, c.nodes[0])
}

// damageFiles damages the files of a stopped node in many ways. It must either
// refuse to start and name the file, or come back with the state that it had.
func damageFiles(t *testing.T, c *cluster, victim *node) {
	const limit, keys = 100, 50
	charge := func() {
		for i := range keys {
			victim.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 1)
		}
	}
	charge()
	// Saving writes the snapshot file, so that there is one to damage.
	if _, stderr, code := limitd(t, "snapshot", "save", "--addr", victim.resp); code != 0 {
		t.Fatalf("snapshot save: %s", stderr)
	}
	charge()
	c.awaitSameHash(c.nodes...)
	victim.terminate()
	sound := readFiles(t, victim.data, "snapshot.db", "raft.db")

	outcomes := map[string]int{}
	for name, whole := range sound {
		for _, d := range damages(whole) {
			t.Run(name+" "+d.name, func(t *testing.T) {
				writeFiles(t, victim.data, sound)
				writeFiles(t, victim.data, map[string][]byte{name: d.bytes})
				c.start(victim)
				if refused(t, victim) {
					outcomes[name+" refused"]++
					if !strings.Contains(victim.out.String(), name) {
						t.Errorf("the refusal does not name %s:\n%s", name, tail(victim.out.String(), 10))
					}
					return
				}
				outcomes[name+" rebuilt or harmless"]++
				for i := 0; i < keys; i += 7 {
					if r := victim.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 0); r[2] != limit-2 {
						t.Errorf("key:%d has %d left, want %d", i, r[2], limit-2)
					}
				}
				c.awaitSameHash(c.nodes...)
				victim.kill()
			})
		}
	}
	t.Log(outcomes)
}

// refused says whether the node ended by itself (with an error) rather than deciding.
func refused(t *testing.T, nd *node) bool {
	t.Helper()
	ended := false
	eventually(t, 20*time.Second, nd.id+" refuses or decides", func() bool {
		if !nd.running() {
			ended = true
			return true
		}
		_, err := nd.r.throttle("limitd:ready", 0, 1, 1, 0)
		return err == nil
	})
	if ended {
		if code := nd.exitCode(); code != 2 && code != 3 {
			t.Errorf("%s ended with code %d:\n%s", nd.id, code, tail(nd.out.String(), 20))
		}
		if strings.Contains(nd.out.String(), "goroutine ") {
			t.Errorf("%s panicked:\n%s", nd.id, tail(nd.out.String(), 40))
		}
	}
	return ended
}

type damage struct {
	name  string
	bytes []byte
}

// damages are ways in which a file comes back wrong.
func damages(whole []byte) []damage {
	out := []damage{
		{"empty", nil},
		{"cut in the middle", whole[:len(whole)/2]},
		{"cut in a page", whole[:len(whole)*2/3+100]},
		{"first page zero", append(make([]byte, 4096), whole[4096:]...)},
		{"both meta pages zero", append(make([]byte, 8192), whole[8192:]...)},
	}
	flips := 60
	if testing.Short() {
		flips = 8
	}
	used := usedBytes(whole)
	for i := range flips {
		at := used[i*len(used)/flips]
		out = append(out, damage{fmt.Sprintf("bit flipped at %d", at), flipped(whole, at)})
	}
	return out
}

// usedBytes are the offsets of what is not zero: zeros have nothing to lose.
func usedBytes(b []byte) []int {
	var used []int
	for i, c := range b {
		if c != 0 {
			used = append(used, i)
		}
	}
	return used
}

func readFiles(t *testing.T, dir string, names ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	return files
}

func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
