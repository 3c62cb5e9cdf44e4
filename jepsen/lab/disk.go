package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// disk is an ext4 file system of its own in a file, mounted in the lab's namespace.
type disk struct {
	image, mount string

	mu     sync.Mutex
	dark   bool // the power is cut
	full   bool
	frozen bool
}

const diskBytes = 512 << 20 // of which only what is written takes space

func newDisk(image, mount string) (*disk, error) {
	d := &disk{image: image, mount: mount}
	if err := os.MkdirAll(mount, 0o700); err != nil {
		return nil, err
	}
	return d, d.make()
}

// make makes an empty file system and mounts it.
func (d *disk) make() error {
	err := os.WriteFile(d.image, nil, 0o600)
	if err == nil {
		err = os.Truncate(d.image, diskBytes)
	}
	if err == nil { // -m 0: root may not write on what is called full
		err = command("", "mkfs.ext4", "-q", "-F", "-m", "0", d.image)
	}
	if err == nil {
		err = d.attach()
	}
	return err
}

func (d *disk) attach() error { return command("", "mount", "-o", "loop", d.image, d.mount) }
func (d *disk) detach() error { return command("", "umount", d.mount) }

// cut is the moment the power goes: from now on nothing reaches the disk, and what
// was not synced is lost.
func (d *disk) cut() error {
	const shutdown, noLogFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN
	if err := d.ioctl(shutdown, noLogFlush); err != nil {
		return err
	}
	d.mu.Lock()
	d.dark = true
	d.mu.Unlock()
	return nil
}

// back mounts what survived, if the power was cut. No process may use the disk.
func (d *disk) back() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dark {
		return nil
	}
	if err := d.detach(); err != nil {
		return err
	}
	d.dark = false
	return d.attach()
}

// fill takes the free space except leave bytes; drain gives it back.
func (d *disk) fill(leave int64) error {
	d.mu.Lock()
	d.full = true
	d.mu.Unlock()
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	at := st.Size()
	for step := int64(1) << 30; step >= 4096; { // as much as there is, in ever smaller pieces
		var fs unix.Statfs_t
		if err := unix.Statfs(d.mount, &fs); err != nil {
			return err
		}
		take := min(step, int64(fs.Bavail)*fs.Bsize-leave)
		if take < 4096 {
			break
		}
		switch err = unix.Fallocate(int(f.Fd()), 0, at, take); {
		case err == nil:
			at += take
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSPC):
			step /= 2
		default:
			return fmt.Errorf("fill %s: %w", d.mount, err)
		}
	}
	return nil
}

func (d *disk) drain() error {
	d.mu.Lock()
	d.full = false
	d.mu.Unlock()
	if err := os.Remove(d.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *disk) filler() string { return filepath.Join(d.mount, "filler") }

// freeze makes every write wait until thaw.
func (d *disk) freeze() error {
	st, err := os.Stat(d.image)
	if err == nil {
		err = tellGuard("thaw", fmt.Sprint(st.Sys().(*syscall.Stat_t).Ino, " ", d.image))
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.frozen {
		return nil
	}
	const freeze = 0xc0045877 // FIFREEZE
	err = d.ioctl(freeze, 0)
	d.frozen = err == nil
	return err
}

func (d *disk) thaw() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.frozen {
		return nil
	}
	const thaw = 0xc0045878 // FITHAW
	err := d.ioctl(thaw, 0)
	d.frozen = err != nil
	return err
}

// ioctl is one on the file system.
func (d *disk) ioctl(request, flags uint32) error {
	fd, err := unix.Open(d.mount, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(unsafe.Pointer(&flags))); e != 0 {
		return fmt.Errorf("ioctl %#x of %s: %w", request, d.mount, e)
	}
	return nil
}

// heal ends all that was done to the disk. If the power is cut, nobody uses it.
func (d *disk) heal() error { return errors.Join(d.thaw(), d.back(), d.drain()) }

// well says that the disk takes writes.
func (d *disk) well() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.dark && !d.full && !d.frozen
}
