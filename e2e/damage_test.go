package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDamagedFilesAreNamedOrRebuiltNeverServed damages the files of a stopped
// follower in many ways. It must either refuse to start and name the file, or
// come back with the same state as the others.
func TestDamagedFilesAreNamedOrRebuiltNeverServed(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	victim := c.others(leader)[1]
	const limit = 100
	for i := range 50 {
		leader.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 1)
	}
	// Saving writes the snapshot file, so that there is one to damage.
	if _, stderr, code := limitd(t, "snapshot", "save", "--addr", victim.resp); code != 0 {
		t.Fatalf("snapshot save: %s", stderr)
	}
	for i := range 50 {
		leader.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 1)
	}
	c.awaitSameHash(c.nodes...)
	victim.terminate()
	sound := readFiles(t, victim.data, "snapshot.db", "raft.db")

	for name, whole := range sound {
		for _, d := range damages(whole) {
			t.Run(name+" "+d.name, func(t *testing.T) {
				writeFiles(t, victim.data, sound)
				writeFiles(t, victim.data, map[string][]byte{name: d.bytes})
				c.start(victim)
				if refused(t, c, victim) {
					if !strings.Contains(victim.out.String(), name) {
						t.Errorf("the refusal does not name %s:\n%s", name, tail(victim.out.String(), 10))
					}
					return
				}
				for i := 0; i < 50; i += 7 {
					if r := victim.r.mustThrottle(fmt.Sprintf("key:%d", i), limit-1, 1, 3600, 0); r[2] != limit-2 {
						t.Errorf("key:%d has %d left, want %d", i, r[2], limit-2)
					}
				}
				c.awaitSameHash(leader, victim)
				victim.kill()
			})
		}
	}
}

// refused says whether the node ended by itself (with an error) rather than deciding.
func refused(t *testing.T, c *cluster, nd *node) bool {
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
		if code := nd.wait(0); code != 2 && code != 3 {
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
	// Bit flips where there is something: zeros have nothing to lose.
	step := len(whole) / 37
	if testing.Short() {
		step = len(whole) / 7
	}
	for at := 16; at < len(whole); at += step {
		if i := nextUsed(whole, at); i >= 0 {
			out = append(out, damage{fmt.Sprintf("bit flipped at %d", i), flipped(whole, i)})
		}
	}
	return out
}

func nextUsed(b []byte, i int) int {
	for ; i < len(b); i++ {
		if b[i] != 0 {
			return i
		}
	}
	return -1
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
