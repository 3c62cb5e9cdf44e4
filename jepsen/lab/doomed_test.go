package lab

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// doomedEnv names the directory of a harness that will be killed.
const doomedEnv = "LIMITD_LAB_DOOMED"

// doomed is that harness: it opens a lab, breaks what can be broken, prints its
// control groups and waits for its end.
func doomed(dir string) int {
	if !Inside() {
		code, err := Enter()
		fmt.Println(err)
		return code
	}
	l, err := Open(Options{Dir: dir, Nodes: 2, Disks: true, Slow: true, Binary: os.Getenv("ECHO")})
	if err == nil {
		err = l.Node("n1").Start()
	}
	for err == nil {
		if _, err := ask(l, "n1", "?"); err == nil {
			break
		}
	}
	n := l.Node("n1").(*node)
	if err == nil {
		err = n.Stall(true)
	}
	if err == nil {
		ask(l, "n1", "sync hangs") // in the kernel, where no signal reaches it
		err = n.CPU(0.5)
	}
	fmt.Println(err, n.quota.dir, l.Node("n2").(*node).quota.dir)
	select {}
}

// What a harness made vanishes with it, even if it is killed with a node that hangs
// in a frozen file system. Where the files lie makes a difference to how the kernel
// names them when their mount is gone.
func TestNothingOutlivesAKilledHarness(t *testing.T) {
	if !Inside() {
		t.Skip("NOT TESTED: needs namespaces")
	}
	for _, place := range []string{t.TempDir(), "/dev/shm"} {
		dir, err := os.MkdirTemp(place, "limitd-lab-doomed-")
		must(t, err)
		defer os.RemoveAll(dir)
		dieIn(t, dir)
	}
}

func dieIn(t *testing.T, dir string) {
	t.Helper()
	binary, err := echo()
	must(t, err)
	harness := exec.Command("/proc/self/exe")
	harness.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, insideEnv) }),
		doomedEnv+"="+dir, "ECHO="+binary)
	harness.Stderr = os.Stderr
	out, err := harness.StdoutPipe()
	must(t, err)
	must(t, harness.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	said := strings.Fields(line)
	if len(said) != 3 || said[0] != "<nil>" {
		harness.Process.Kill()
		t.Fatalf("the harness says %q", line)
	}
	if len(processesOf(dir)) == 0 || len(loopsOf(dir)) != 2 {
		t.Errorf("a lab that lives has the processes %q and the loop devices %q", processesOf(dir), loopsOf(dir))
	}
	must(t, harness.Process.Kill())
	harness.Wait()
	eventually(t, "no process, loop device, mount or control group is left", func() bool {
		_, one := os.Stat(said[1])
		_, two := os.Stat(said[2])
		return len(processesOf(dir)) == 0 && len(loopsOf(dir)) == 0 && os.IsNotExist(one) && os.IsNotExist(two)
	})
}

// processesOf are the processes that have something to do with a directory, those in
// namespaces inside this one too.
func processesOf(dir string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		line, _ := os.ReadFile(p + "/cmdline")
		env, _ := os.ReadFile(p + "/environ")
		if strings.Contains(string(line)+string(env), dir) {
			found = append(found, string(line))
		}
	}
	return found
}

// loopsOf are the loop devices with files in a directory. A file system that is still
// mounted, anywhere, has one.
func loopsOf(dir string) (found []string) {
	all, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range all {
		if image, _ := os.ReadFile(file); strings.Contains(string(image), filepath.Base(dir)) {
			found = append(found, file)
		}
	}
	return found
}
