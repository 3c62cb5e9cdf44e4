package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// powerDisk is a file system of its own that can lose what was not synced, as a
// disk does when the power goes.
type powerDisk struct {
	t     testing.TB
	image string
	mount string
}

// newPowerDisk makes an ext4 file system in a file and mounts it. That needs root,
// mkfs.ext4 and a kernel that lets it mount. LIMITD_REQUIRE_ROOT (set where all
// tests must run) turns the skip into a failure.
func newPowerDisk(t testing.TB) *powerDisk {
	t.Helper()
	d, err := makePowerDisk(t)
	switch {
	case err == nil:
	case os.Getenv("LIMITD_REQUIRE_ROOT") != "":
		t.Fatal(err)
	default:
		t.Skip("NOT TESTED: ", err)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", d.mount).Run() })
	return d
}

func makePowerDisk(t testing.TB) (*powerDisk, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a power cut needs root to mount a file system")
	}
	dir := t.TempDir()
	d := &powerDisk{t: t, image: filepath.Join(dir, "disk.img"), mount: filepath.Join(dir, "disk")}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(d.image, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := command("mkfs.ext4", "-q", "-F", d.image); err != nil {
		return nil, err
	}
	return d, command("mount", "-o", "loop", d.image, d.mount)
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

func (d *powerDisk) run(name string, args ...string) {
	d.t.Helper()
	if err := command(name, args...); err != nil {
		d.t.Fatal(err)
	}
}

// cut is the moment the power goes: from now on nothing reaches the disk, and
// what was not synced is lost.
func (d *powerDisk) cut() {
	d.t.Helper()
	fd, err := unix.Open(d.mount, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer unix.Close(fd)
	const shutdown = 0x8004587d // EXT4_IOC_SHUTDOWN
	noLogFlush := uint32(2)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), shutdown, uintptr(unsafe.Pointer(&noLogFlush))); e != 0 {
		d.t.Fatalf("cut the power of %s: %v", d.mount, syscall.Errno(e))
	}
}

// back mounts what survived. No process may use the disk any more.
func (d *powerDisk) back() {
	d.t.Helper()
	d.run("umount", d.mount)
	d.run("mount", "-o", "loop", d.image, d.mount)
}

// TestThePowerCutOfThisTestLosesWhatWasNotSynced: a cut that lost nothing would
// prove nothing.
func TestThePowerCutOfThisTestLosesWhatWasNotSynced(t *testing.T) {
	d := newPowerDisk(t)
	write := func(name string, sync bool) {
		f, err := os.Create(filepath.Join(d.mount, name))
		if err == nil {
			_, err = f.WriteString("kept?")
		}
		if err == nil && sync {
			err = f.Sync()
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("synced", true)
	write("not synced", false)
	d.cut()
	d.back()
	if b, err := os.ReadFile(filepath.Join(d.mount, "synced")); string(b) != "kept?" {
		t.Errorf("what was synced is lost: %q, %v", b, err)
	}
	if b, _ := os.ReadFile(filepath.Join(d.mount, "not synced")); string(b) == "kept?" {
		t.Error("what was not synced survived")
	}
}

// TestPowerCutOfAllNodesKeepsEveryAnsweredAdmission cuts the power of all three
// at once, right after a reply and under load, and does the sum.
func TestPowerCutOfAllNodesKeepsEveryAnsweredAdmission(t *testing.T) {
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	d := newPowerDisk(t)
	c := newClusterIn(t, d.mount, 3, "[limits]\nmin_free_disk = \"16MiB\"")
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
		eventually(t, 20*time.Second, "answers before the cut", func() bool { return l.answers() > int64(100+200*round) })
		d.cut()
		for _, nd := range c.nodes {
			nd.cmd.Process.Kill() // a node that met the dead disk may have stopped by itself
			<-nd.done
		}
		l.end()
		d.back()
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
