package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fill makes every write to the open file at path fail as on a full disk, until the returned function is called.
func fill(t testing.TB, path string) (drain func()) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range open {
		if to, _ := os.Readlink(link); to != path {
			continue
		}
		var fd int
		for _, digit := range strings.TrimPrefix(link, "/proc/self/fd/") {
			fd = 10*fd + int(digit-'0')
		}
		kept, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Dup3(int(full.Fd()), fd, unix.O_CLOEXEC); err != nil {
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

// A full disk is an error that names the file and changes nothing; with room again, the node goes on without a restart.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	commit(t, s, 5, 100, rec("a", "5", 200))
	for _, records := range [][]Record{{rec("a", "6", 200)}, manyRecords(1000, 1000)} { // within the file, and beyond its end
		drain := fill(t, s.Path())
		k := create(t, s, 6)
		err := k.Commit(Header{Last: 6, T: 100}, records)
		k.Release()
		receipt := s.SaveReceipt(Receipt{At: 9})
		drain()
		for _, err := range []error{err, receipt} {
			if err == nil || !strings.Contains(err.Error(), s.Path()) {
				t.Fatal(err)
			}
		}
		expect(t, contents(t, s), rec("a", "5", 200))
		if r, ok := s.Receipt(); ok {
			t.Fatal("a receipt that is not on the disk:", r)
		}
	}
	commit(t, s, 7, 100, rec("b", "7", 200))
	s.Close()
	if err := CheckBolt(s.Path()); err != nil {
		t.Fatal(err)
	}
	expect(t, contents(t, openTest(t, dir, Options{})), rec("a", "5", 200), rec("b", "7", 200))
}
