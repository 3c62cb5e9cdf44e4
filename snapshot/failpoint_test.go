//go:build failpoint

package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A child process does one thing to a data directory and is killed on the way; the parent then looks at what a restart finds.

const (
	childDo  = "LIMITD_SNAPSHOT_CHILD" // what the child does
	childDir = "LIMITD_SNAPSHOT_DIR"   // and to which directory
)

var (
	oldRecords = []Record{rec("a", "old", 900), rec("b", "old", 900), rec("c", "old", 900)}
	newRecords = []Record{rec("a", "new", 900), rec("c", "old", 900), rec("d", "new", 900)}
	oldReceipt = Receipt{At: 1, Boot: 1, BootID: "old"}
	newReceipt = Receipt{At: 2, Boot: 2, BootID: "new"}
)

var children = map[string]func(s *Store) error{
	"create": func(*Store) error { return nil }, // OpenStore did it
	"commit": func(s *Store) error {
		k, err := s.Create(1, 9, 1, testConf, 1, nil)
		if err != nil {
			return err
		}
		defer k.(*Sink).Release()
		return k.(*Sink).Commit(Header{Last: 9, T: 200}, []Record{rec("a", "new", 900), gone("b"), rec("d", "new", 900)})
	},
	"rebuild": func(s *Store) error {
		s.steps.page, s.steps.written = 1, 1
		k, err := s.Create(1, 9, 1, testConf, 1, nil)
		if err != nil {
			return err
		}
		defer k.(*Sink).Release()
		for _, portion := range [][]Record{{rec("a", "new", 900), gone("b")}, {rec("d", "new", 900)}} {
			if err := k.(*Sink).Add(portion); err != nil {
				return err
			}
		}
		return k.(*Sink).Commit(Header{Last: 9, T: 200}, nil)
	},
	"install": func(s *Store) error {
		s.steps.page, s.steps.written = 1, 1
		k, err := s.Create(1, 9, 1, testConf, 1, nil)
		if err != nil {
			return err
		}
		w := NewStreamWriter(k, Header{Last: 9, T: 200})
		for _, r := range newRecords {
			if err := w.Put(r); err != nil {
				return err
			}
		}
		if _, err := w.Close(); err != nil {
			return err
		}
		return k.Close()
	},
	"save": func(s *Store) error {
		_, err := s.SaveTo(filepath.Join(s.dir, "saved"))
		return err
	},
}

func TestMain(m *testing.M) {
	if do := children[os.Getenv(childDo)]; do != nil {
		fmt.Println("the child went on:", child(do))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func child(do func(*Store) error) error {
	s, err := OpenStore(os.Getenv(childDir), Options{
		Receipt:     func() (Receipt, bool) { return newReceipt, true },
		OnInstall:   func(uint64, uint64) error { return nil },
		MaxFileSize: testMmap,
	})
	if err != nil {
		return err
	}
	return do(s)
}

// What the file holds after a crash at each place.
var crashes = []struct {
	point string // and what is done: the part before the dot
	new   bool
}{
	{"create.built", false}, {"create.synced", false}, {"create.renamed", false}, {"create.dirsynced", false},
	{"commit.begin", false}, {"commit.put", false}, {"commit.done", true},
	{"install.begin", false}, {"install.batch", false}, {"install.batch=3", false}, {"install.built", false}, {"install.synced", false},
	{"install.renamed", true}, {"install.dirsynced", true}, {"install.swapped", true}, {"install.hooked", true},
	{"rebuild.added", false}, {"rebuild.added=2", false}, {"rebuild.begin", false}, {"rebuild.batch", false}, {"rebuild.batch=2", false},
	{"rebuild.batch=3", false}, {"rebuild.built", false}, {"rebuild.synced", false},
	{"rebuild.renamed", true}, {"rebuild.dirsynced", true}, {"rebuild.swapped", true}, {"rebuild.done", true},
	{"save.written", false}, {"save.synced", false}, {"save.renamed", false},
}

func TestACrashAnywhereLeavesTheOldOrTheNewSnapshot(t *testing.T) {
	for _, c := range crashes {
		t.Run(c.point, func(t *testing.T) {
			do, _, _ := strings.Cut(c.point, ".")
			dir := t.TempDir()
			old := oldRecords
			if do == "create" {
				old = nil
			} else {
				s := openTest(t, dir, Options{Receipt: func() (Receipt, bool) { return oldReceipt, true }})
				commit(t, s, 5, 100, old...)
				s.Close()
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childDo+"="+do, childDir+"="+dir, "LIMITD_FAILPOINT="+c.point)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the child was not killed at %s: %v\n%s", c.point, err, out)
			}

			s := openTest(t, dir, Options{})
			noLeftovers(t, s)
			m, _ := s.Meta()
			r, _ := s.Receipt()
			switch {
			case do == "create":
				expect(t, contents(t, s))
			case c.new:
				expect(t, contents(t, s), newRecords...)
				if m.Index != 9 || r != newReceipt {
					t.Errorf("new records with %+v and %+v", m, r)
				}
			default:
				expect(t, contents(t, s), old...)
				if m.Index != 5 || r != oldReceipt {
					t.Errorf("old records with %+v and %+v", m, r)
				}
			}
			if saved, err := os.Open(filepath.Join(dir, "saved")); err == nil {
				defer saved.Close()
				if _, err := Inspect(saved); err != nil {
					t.Error("under its name is a file that is not whole:", err)
				}
			} else if c.point == "save.renamed" {
				t.Error(err)
			}
			commit(t, s, 20, 300, rec("after", "the crash", 900)) // and it goes on
		})
	}
}

// Every failpoint in the code has a row above.
func TestNoFailpointIsForgotten(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\bFailpoint\(((?:w\.)?point \+ )?"([^"]+)"\)`)
	places := map[string]bool{}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(src), -1) {
			if m[1] == "" {
				places[m[2]] = true
			} else {
				for _, do := range []string{"create", "install", "rebuild"} {
					places[do+m[2]] = true
				}
			}
		}
	}
	for _, c := range crashes {
		point, _, _ := strings.Cut(c.point, "=")
		delete(places, point)
	}
	for _, only := range []string{"create.batch", "create.swapped"} { // an empty file is made without
		delete(places, only)
	}
	if len(places) > 0 {
		t.Error("nobody crashes at", slices.Sorted(maps.Keys(places)))
	}
}
