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
	if err := able(); err != nil {
		return 0, err
	}
	cmd := exec.Command("unshare", append([]string{
		"-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "--propagation", "private",
		"/proc/self/exe"}, os.Args[1:]...)...)
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd.Args[len(cmd.Args)-len(os.Args)] = self
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// able says what this machine lacks for namespaces.
func able() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: namespaces need root", ErrUnable)
	}
	for _, tool := range []string{"unshare", "nsenter", "ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %s is not installed (apt-get install util-linux iproute2 nftables)", ErrUnable, tool)
		}
	}
	return nil
}

// prepare makes the private namespaces fit for a lab.
func prepare() error {
	if !Inside() {
		return errors.New("a lab is opened in namespaces of its own: call Enter first")
	}
	if err := unix.Mount("none", "/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount a /run of its own: %w", err)
	}
	if err := os.Mkdir("/run/netns", 0o755); err != nil {
		return err
	}
	return command("", "ip", "link", "set", "lo", "up")
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

// within runs a program in a network namespace.
func within(netns, input, name string, args ...string) error {
	return command(input, "nsenter", append([]string{"--net=/run/netns/" + netns, name}, args...)...)
}
