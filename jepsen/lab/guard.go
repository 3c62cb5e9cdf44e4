package lab

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Nearly all of a lab vanishes with its namespaces. Two things do not: a frozen file
// system, which the kernel keeps for whoever might thaw it, and a control group. So
// Enter starts a guard outside, which is told of both and undoes them when the lab is
// gone, in whatever way that was.

// guardFD is the guard's input, in a process that Enter started.
const guardFD = 3

// guardScript takes lines until nobody can write more, and thaws first: until then a
// killed process may be held in the kernel, and in its group.
//
//	thaw INODE IMAGE  the file system in this file, if it is still mounted somewhere
//	rmdir CGROUP
//
// A file whose mount is gone is known by the end of its name alone, hence the inode.
const guardScript = `trap '' INT TERM HUP
told=$(cat)
echo "$told" | sort -ru | while read -r verb what; do
	case $verb in
	thaw)
		losetup --list --noheadings --raw -O BACK-INO,NAME,BACK-FILE | while read -r inode loop file; do
			case $what in "$inode "*"${file% (deleted)}") ;; *) continue ;; esac
			mount -t ext4 "$loop" /mnt && { fsfreeze -u /mnt; umount /mnt; }
		done ;;
	rmdir)
		for try in $(seq 50); do test -d "$what" || break; rmdir "$what" && break; sleep 0.2; done ;;
	esac
done 2>/dev/null`

// startGuard starts a guard. It works, and ends, when tell is closed everywhere.
func startGuard() (tell *os.File, ended func(), err error) {
	hear, tell, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer hear.Close()
	guard := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c", guardScript)
	guard.Stdin = hear
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := guard.Start(); err != nil {
		tell.Close()
		return nil, nil, fmt.Errorf("start the lab's guard: %w", err)
	}
	return tell, func() { tell.Close(); guard.Wait() }, nil
}

// tellGuard has the guard undo something, should this process not come to it.
func tellGuard(verb, what string) error {
	if !Inside() {
		return nil
	}
	if _, err := syscall.Write(guardFD, fmt.Appendf(nil, "%s %s\n", verb, what)); err != nil {
		return fmt.Errorf("tell the lab's guard: %w", err)
	}
	return nil
}
