package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// insideEnv tells a process that it is the one that Enter started.
const insideEnv = "LIMITD_LAB_INSIDE"

// Inside says that this process runs in namespaces of its own: what it does to
// networks and mounts vanishes with it, even if it is killed.
func Inside() bool { return os.Getenv(insideEnv) == "1" }

// Enter runs this program again, with the same arguments, in network, mount and
// process namespaces of its own, and returns its exit code. When this process dies,
// all that runs in there dies too.
func Enter() (int, error) {
	if err := Enterable(); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	tell, ended, err := startGuard()
	if err != nil {
		return 0, err
	}
	defer ended()
	cmd := exec.Command("unshare", append([]string{
		"-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "--propagation", "private", self}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{tell} // guardFD
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// tools that namespaces need.
var tools = []string{"unshare", "nsenter", "ip", "ss", "nft", "sysctl"}

// Enterable says what this machine lacks for namespaces, an ErrUnable; nil: nothing.
func Enterable() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: namespaces need root", ErrUnable)
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %s is not installed (apt-get install util-linux iproute2 nftables procps)", ErrUnable, tool)
		}
	}
	return nil
}

// command runs a program with an input and waits for its success.
func command(input, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
