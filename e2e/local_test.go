package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startLocal runs `limitd local` in dir until it says that all nodes answer.
func startLocal(t *testing.T, dir string, port, nodes int) *process {
	t.Helper()
	p := launch(t, dir, "local", "local", "--dir", "lab", "--port", strconv.Itoa(port), "--nodes", strconv.Itoa(nodes))
	eventually(t, 60*time.Second, "limitd local says how to talk to it", func() bool {
		if !p.running() {
			t.Fatalf("limitd local has ended:\n%s", p.out)
		}
		return strings.Contains(p.out.String(), "Ctrl-C")
	})
	return p
}

func TestNoNodeOutlivesLocal(t *testing.T) {
	t.Parallel()
	port := reserveLocal(t, 3)
	p := startLocal(t, t.TempDir(), port, 3)
	pids := printedPIDs(t, p.out.String())
	p.kill()
	eventually(t, 10*time.Second, "all nodes are gone", func() bool {
		for _, pid := range pids {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

// TestCtrlCInATerminalReachesTheNodesInOrder: the terminal signals the whole
// foreground process group; the nodes must not be in it.
func TestCtrlCInATerminalReachesTheNodesInOrder(t *testing.T) {
	t.Parallel()
	port := reserveLocal(t, 3)
	p := startLocal(t, t.TempDir(), port, 3)
	group, err := syscall.Getpgid(p.pid())
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range printedPIDs(t, p.out.String()) {
		if g, err := syscall.Getpgid(pid); err != nil || g == group {
			t.Errorf("pid %d is in the process group of limitd local (%v)", pid, err)
		}
	}
	p.cmd.Process.Signal(os.Interrupt)
	if code := p.wait(20 * time.Second); code != 0 {
		t.Errorf("ended with code %d:\n%s", code, p.out)
	}
}

func TestLocalGoesOnWithItsData(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), reserveLocal(t, 1)
	for round := range int64(2) {
		p := startLocal(t, dir, port, 1)
		if r := dial(t, addr(port)).mustThrottle("kept", 9, 1, 3600, 1); r[2] != 9-round {
			t.Errorf("round %d: %v", round, r)
		}
		p.terminate()
	}
	p := launch(t, dir, "other layout", "local", "--dir", "lab", "--port", strconv.Itoa(port), "--nodes", "3")
	if code := p.wait(10 * time.Second); code != 2 || !strings.Contains(p.out.String(), filepath.Join("lab", "cluster.toml")) {
		t.Errorf("three nodes over the data of one: code %d\n%s", code, p.out)
	}
}

func TestLocalSaysWhichNodeCannotStart(t *testing.T) {
	t.Parallel()
	port := reserveLocal(t, 3)
	taken, err := net.Listen("tcp", addr(port+1001)) // n2's peer port
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p := launch(t, t.TempDir(), "local", "local", "--port", strconv.Itoa(port))
	if code := p.wait(30 * time.Second); code != 2 {
		t.Errorf("code %d", code)
	}
	for _, want := range []string{"n2 has died while starting", "address already in use", filepath.Join("limitd-local", "n2.log")} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, p.out)
		}
	}
}

// alive says whether a process exists and is not just waiting to be reaped.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
