package lab

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain runs the tests in namespaces of their own. Where that cannot be, it says
// what is not tested; LIMITD_REQUIRE_ROOT makes that a failure.
func TestMain(m *testing.M) {
	if Inside() {
		os.Exit(m.Run())
	}
	code, err := Enter()
	if err != nil {
		fmt.Println("NOT TESTED: the lab:", err)
		if os.Getenv("LIMITD_REQUIRE_ROOT") != "" {
			code = 1
		}
	}
	os.Exit(code)
}

var opened struct {
	Lab
	dir string
}

// echoLab is a lab of three nodes and a spare, one for all tests: a process has one network.
func echoLab(t *testing.T) Lab {
	t.Helper()
	if opened.Lab != nil {
		return opened
	}
	dir, err := os.MkdirTemp("", "lab-")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "echo")
	if err := BuildWithClock(binary, "./testdata/echo", "", dir); err != nil {
		t.Fatal(err)
	}
	l, err := Open(Options{Dir: dir, Nodes: 3, Binary: binary, Disks: true, Clocks: true})
	if err != nil {
		t.Fatal(err)
	}
	opened.Lab, opened.dir = l, dir
	for _, n := range l.Nodes() {
		start(t, n)
	}
	return l
}

func start(t *testing.T, n Node) {
	t.Helper()
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if _, err := ask(n, "dial 127.0.0.1:1"); err == nil {
			return
		}
	}
	log, _ := io.ReadAll(n.Log())
	t.Fatalf("%s does not answer: %s", n.ID(), log)
}

// ask sends a line to a node as a client.
func ask(n Node, line string) (string, error) {
	c, err := n.(*node).l.net.Dial(n.ID(), RESPPort, 700*time.Millisecond)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(3 * time.Second))
	fmt.Fprintln(c, line)
	var b [100]byte
	k, err := c.Read(b[:])
	return strings.TrimSpace(string(b[:k])), err
}

func answer(t *testing.T, n Node, line string) string {
	t.Helper()
	s, err := ask(n, line)
	if err != nil {
		t.Fatalf("%s: %q: %v", n.ID(), line, err)
	}
	return s
}

func TestCutsGoOneWayAndByPort(t *testing.T) {
	l := echoLab(t)
	n1, n2, n3 := l.Node("n1"), l.Node("n2"), l.Node("n3")
	sees := func(from, to Node) bool { return answer(t, from, "dial "+to.Peer()) == "true" }
	for _, tt := range []struct {
		name     string
		cuts     []Cut
		n12, n23 bool // a connection needs both ways
		client   bool // to n1
	}{
		{"none", nil, true, true, true},
		{"both ways", []Cut{{"n1", "n2", AnyPort}, {"n2", "n1", AnyPort}}, false, true, true},
		{"one way", []Cut{{From: "n2", To: "n1"}}, false, true, true},
		{"peers only", []Cut{{"n1", "n2", PeerPort}, {"n2", "n1", PeerPort}}, false, true, true},
		{"another port", []Cut{{"n1", "n2", RESPPort}}, true, true, true},
		{"clients", []Cut{{Client, "n1", RESPPort}}, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := l.Network().Cut(tt.cuts); err != nil {
				t.Fatal(err)
			}
			if tt.client {
				if got := sees(n1, n2); got != tt.n12 {
					t.Errorf("n1 reaches n2: %v", got)
				}
			} else if _, err := ask(n1, "dial 127.0.0.1:1"); err == nil {
				t.Error("a client reaches n1")
			}
			if got := sees(n2, n3); got != tt.n23 {
				t.Errorf("n2 reaches n3: %v", got)
			}
			h := l.Health()
			if h["n1"].Client != tt.client || len(h["n3"].Peers) != 2 {
				t.Errorf("health %+v", h)
			}
		})
	}
	if err := l.Network().Cut([]Cut{{"n1", "n9", AnyPort}}); err == nil || !strings.Contains(err.Error(), "n9") {
		t.Errorf("a cut from nobody: %v", err)
	}
	if err := l.Network().Cut(nil); err != nil {
		t.Fatal(err)
	}
}

func TestSeveredConnectionsEnd(t *testing.T) {
	l := echoLab(t)
	c, err := l.Network().Dial("n1", PeerPort, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := l.Network().Sever(Client, "n1"); err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("read from a severed connection: %v", err)
	}
}

func TestAPowerCutLosesWhatWasNotSynced(t *testing.T) {
	n := echoLab(t).Node("n2")
	answer(t, n, "sync kept")
	answer(t, n, "write lost")
	if err := n.PowerCut(); err != nil {
		t.Fatal(err)
	}
	if n.Running() {
		t.Fatal("it runs without power")
	}
	start(t, n)
	if _, err := os.Stat(filepath.Join(n.Data(), "kept")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(n.Data(), "lost")); err == nil {
		t.Error("a write that was not synced outlived the power")
	}
}

func TestDisksFillUpAndStall(t *testing.T) {
	l := echoLab(t)
	n := l.Node("n1")
	if err := n.Fill(0); err != nil {
		t.Fatal(err)
	}
	if got := answer(t, n, "sync full"); got != "false" || l.Health()["n1"].Disk {
		t.Errorf("a write to a full disk: %s; %+v", got, l.Health()["n1"])
	}
	if err := n.Drain(); err != nil {
		t.Fatal(err)
	}
	if err := n.Stall(true); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(n, "sync stalled"); err == nil {
		t.Errorf("a stalled disk answered %q", got)
	}
	if err := n.Stall(false); err != nil {
		t.Fatal(err)
	}
	if got := answer(t, n, "sync again"); got != "true" {
		t.Error("no write after the stall")
	}
}

// The wall clock of one node moves; its monotonic one and the machine's do not.
func TestTheWallClockOfOneNodeMoves(t *testing.T) {
	l := echoLab(t)
	read := func(n Node) (time.Duration, int64) {
		t.Helper()
		var wall, mono int64
		if _, err := fmt.Sscan(answer(t, n, "now"), &wall, &mono); err != nil {
			t.Fatal(err)
		}
		return time.Duration(wall - time.Now().UnixNano()), mono
	}
	n := l.Node("n3")
	for _, d := range []time.Duration{-time.Hour, 2 * time.Hour, 87600 * time.Hour, -87601 * time.Hour} {
		before, _ := read(n)
		if err := n.JumpWall(d); err != nil {
			t.Fatal(err)
		}
		after, mono := read(n)
		if moved := after - before; moved < d-time.Second || moved > d+time.Second || mono < 50 || mono > 1000 {
			t.Errorf("moved by %v, want %v; 50 ms were %d", moved, d, mono)
		}
	}
	if off, _ := read(l.Node("n1")); off < -time.Second || off > time.Second {
		t.Errorf("n1's clock moved too: %v", off)
	}
}

func TestAPausedNodeIsNotUp(t *testing.T) {
	l := echoLab(t)
	n := l.Node("n1")
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	if l.Health()["n1"].Up {
		t.Error("a paused node is up")
	}
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	if answer(t, n, "dial 127.0.0.1:1"); !l.Health()["n1"].Up {
		t.Error("a node that goes on is not up")
	}
}

func TestDamageChangesOneFile(t *testing.T) {
	l := echoLab(t)
	n := l.Node("n3")
	answer(t, n, "sync file")
	if err := n.Damage(Damage{File: "file", How: "flip"}); err == nil {
		t.Error("the files of a running node were damaged")
	}
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if code, ended := n.Exited(); !ended || code != -1 {
		t.Errorf("exited %d, %v", code, ended)
	}
	file := filepath.Join(n.Data(), "file")
	for how, want := range map[string]func([]byte) bool{
		"flip":     func(b []byte) bool { return len(b) == 1 && b[0] != 'x' },
		"truncate": func(b []byte) bool { return len(b) == 0 },
		"zero":     func(b []byte) bool { return bytes.Equal(b, []byte{0}) },
	} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := n.Damage(Damage{File: "file", How: how}); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(file); !want(b) {
			t.Errorf("%s made %q", how, b)
		}
	}
	if err := n.Wipe(); err != nil {
		t.Fatal(err)
	}
	start(t, n)
}

// What the harness made vanishes with it, even if it is killed.
func TestNothingOutlivesAKilledHarness(t *testing.T) {
	outside := exec.Command("unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "--propagation", "private",
		"sh", "-c", "mount -t tmpfs none /run && mkdir /run/netns && ip netns add inner && echo made && sleep 60")
	out, err := outside.StdoutPipe()
	if err == nil {
		err = outside.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if err := outside.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	outside.Wait()
	deadline := time.Now().Add(5 * time.Second)
	for exec.Command("pgrep", "-x", "sleep").Run() == nil {
		if time.Now().After(deadline) {
			t.Fatal("a process outlived its harness")
		}
	}
	if _, err := os.Stat("/run/netns/inner"); err == nil {
		t.Error("a namespace outlived its harness")
	}
}

// The last test: it ends the lab.
func TestZCloseEndsAll(t *testing.T) {
	l := echoLab(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range l.Nodes() {
		if n.Running() {
			t.Errorf("%s runs", n.ID())
		}
	}
	os.RemoveAll(opened.dir)
}
