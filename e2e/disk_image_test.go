package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// disk is an ext4 file system of its own, in a file: it can lose its power, stall
// and fill up as a real one does, and nothing else on the machine notices.
type disk struct {
	t      testing.TB
	image  string
	mount  string
	device string // over image
}

const diskSize = 1 << 30 // of which only what is written takes space

// newDisk makes a disk and mounts it at mount, or at a place of its own if mount is
// "". That needs root, mkfs.ext4 and a kernel that lets it mount.
// LIMITD_REQUIRE_ROOT (set where all tests must run) turns the skip into a failure.
func newDisk(t testing.TB, mount string) *disk {
	t.Helper()
	dir := t.TempDir()
	if mount == "" {
		mount = filepath.Join(dir, "disk")
	}
	d := &disk{t: t, image: filepath.Join(dir, "disk.img"), mount: mount}
	switch err := d.make(); {
	case err == nil:
	case os.Getenv("LIMITD_REQUIRE_ROOT") != "":
		t.Fatal(err)
	default:
		t.Skip("NOT TESTED: ", err)
	}
	t.Cleanup(func() {
		exec.Command("umount", "-l", d.mount).Run()
		d.detach()
	})
	return d
}

func (d *disk) make() error {
	if os.Geteuid() != 0 {
		return errors.New("a disk of its own needs root to mount a file system")
	}
	err := os.WriteFile(d.image, nil, 0o600)
	if err == nil {
		err = os.Truncate(d.image, diskSize)
	}
	if err == nil {
		err = os.Mkdir(d.mount, 0o700)
	}
	if err == nil { // -m 0: root may not write on what is called full
		err = command("mkfs.ext4", "-q", "-F", "-m", "0", d.image)
	}
	if err == nil {
		err = d.attach()
	}
	return err
}

// attach mounts the image by a device of its own: a file system that lost its power
// stays so for as long as another mount namespace of this machine holds it.
func (d *disk) attach() error {
	out, err := exec.Command("losetup", "--find", "--show", d.image).Output()
	if err != nil {
		return fmt.Errorf("losetup %s: %w", d.image, err)
	}
	d.device = strings.TrimSpace(string(out))
	return command("mount", d.device, d.mount)
}

// detach lets the device go as soon as nobody holds it.
func (d *disk) detach() { exec.Command("losetup", "--detach", d.device).Run() }

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

// cut is the moment the power goes: from now on nothing reaches the disk, and
// what was not synced is lost.
func (d *disk) cut() {
	d.t.Helper()
	fd, err := unix.Open(d.mount, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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
func (d *disk) back() {
	d.t.Helper()
	eventually(d.t, 10*time.Second, "nobody uses the disk", func() bool { // a process that has just begun may, for a moment
		return command("umount", d.mount) == nil
	})
	d.detach()
	if err := d.attach(); err != nil {
		d.t.Fatal(err)
	}
}

// freeze makes every write wait, as a disk that hangs does, until thaw. Whatever
// becomes of this test, the disk thaws: a process of its own holds it frozen, for
// as long as this one holds its input open.
func (d *disk) freeze() (thaw func()) {
	d.t.Helper()
	holder := exec.Command("sh", "-c", `fsfreeze -f "$0" && echo frozen; cat; fsfreeze -u "$0"`, d.mount)
	holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the test is not its own
	holder.Stderr = os.Stderr
	hold, err := holder.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	said, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		d.t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		hold.Close()
		if err := holder.Wait(); err != nil {
			d.t.Errorf("thaw %s: %v", d.mount, err)
		}
	})
	d.t.Cleanup(thaw) // before the processes are killed that hang in it
	if line, _ := bufio.NewReader(said).ReadString('\n'); line != "frozen\n" {
		d.t.Fatalf("freeze %s: %q", d.mount, line)
	}
	return thaw
}

// fill takes the free space except leave bytes, until drain.
func (d *disk) fill(leave int64) {
	d.t.Helper()
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		d.t.Fatal(err)
	}
	at := st.Size()
	for step := int64(1) << 30; step >= 4096; { // as much as there is, in ever smaller pieces
		if take := min(step, d.free()-leave); take < 4096 {
			break
		} else if err = unix.Fallocate(int(f.Fd()), 0, at, take); err == nil {
			at += take
			continue
		} else if !errors.Is(err, unix.ENOSPC) {
			d.t.Fatalf("fill %s: %v", d.mount, err)
		}
		step /= 2
	}
}

// drain frees what fill took.
func (d *disk) drain() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) filler() string { return filepath.Join(d.mount, "filler") }

// free is the free space in bytes.
func (d *disk) free() int64 {
	d.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(d.mount, &st); err != nil {
		d.t.Fatal(err)
	}
	return int64(st.Bavail) * int64(st.Bsize)
}

// newClusterOnDisks is newCluster with a disk for each node.
func newClusterOnDisks(t testing.TB, n int, settings string) (*cluster, map[*node]*disk) {
	t.Helper()
	c := newCluster(t, n, settings)
	disks := map[*node]*disk{}
	for _, nd := range c.nodes {
		disks[nd] = newDisk(t, nd.data)
	}
	return c, disks
}
