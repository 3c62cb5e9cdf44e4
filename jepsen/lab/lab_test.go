package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain runs the tests in namespaces of their own. Where that cannot be, it says
// what is not tested; LIMITD_REQUIRE_ROOT makes that a failure.
func TestMain(m *testing.M) {
	if dir := os.Getenv(doomedEnv); dir != "" {
		os.Exit(doomed(dir))
	}
	if Inside() {
		os.Exit(runTests(m))
	}
	code, err := Enter()
	if err != nil {
		fmt.Println("NOT TESTED: all of the lab but its proxies:", err)
		if os.Getenv("LIMITD_REQUIRE_ROOT") != "" {
			os.Exit(1)
		}
		code = runTests(m)
	}
	os.Exit(code)
}

// builds is where the binaries lie that the tests build.
var builds string

func runTests(m *testing.M) int {
	var err error
	if builds, err = os.MkdirTemp("", "limitd-lab-"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(builds)
	return m.Run()
}

// echo is a binary of testdata/echo that obeys the lab, built once.
var echo = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(builds, "echo")
	return binary, BuildWithClock(binary, "", "./testdata/echo", "", builds)
})

// open opens a lab of echo nodes for one test, and starts them.
func open(t *testing.T, o Options) Lab {
	t.Helper()
	var err error
	o.Binary, err = echo()
	must(t, err)
	l := prepare(t, o)
	for _, n := range l.Nodes()[:o.Nodes] {
		start(t, l, n)
	}
	return l
}

// prepare opens a lab for one test.
func prepare(t *testing.T, o Options) Lab {
	t.Helper()
	if !o.Proxy && !Inside() {
		t.Skip("NOT TESTED: needs namespaces")
	}
	o.Dir = inMemory(t)
	l, err := Open(o)
	must(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for _, n := range l.Nodes() {
			if n.Running() {
				t.Errorf("%s outlived its lab", n.ID())
			}
			if log, err := io.ReadAll(n.Log()); t.Failed() && err == nil {
				t.Logf("log of %s:\n%s", n.ID(), log)
			}
		}
	})
	return l
}

// inMemory is a directory where a sync does not wait for what else the machine writes.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "limitd-lab-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, l Lab, n Node) {
	t.Helper()
	must(t, n.Start())
	eventually(t, n.ID()+" answers", func() bool {
		_, err := ask(l, n.ID(), "?")
		return err == nil
	})
}

// How long an answer may take that must come, on a machine that does much else too,
// and how long one is waited for that must not come.
const (
	patience   = 10 * time.Second
	impatience = 700 * time.Millisecond
)

// ask sends a line to a node as a client, and returns its answer if that comes soon.
func ask(l Lab, id, line string) (string, error) { return askWithin(l, id, line, impatience) }

// answer is ask for an answer that must come.
func answer(t *testing.T, l Lab, id, line string) string {
	t.Helper()
	s, err := askWithin(l, id, line, patience)
	if err != nil {
		t.Fatalf("%s: %q: %v", id, line, err)
	}
	return s
}

func askWithin(l Lab, id, line string, d time.Duration) (string, error) {
	c, err := l.Network().Dial(id, RESPPort, d)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return exchange(c, line, d)
}

func exchange(c net.Conn, line string, d time.Duration) (string, error) {
	c.SetDeadline(time.Now().Add(d))
	fmt.Fprintln(c, line)
	said, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(said), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until a thing is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after 30 s: %s", what)
		}
	}
}

func TestANodeThatEndsIsNoticedAndLogged(t *testing.T) {
	l := open(t, Options{Nodes: 1, Proxy: true})
	n := l.Node("n1")
	must(t, n.Kill())
	if code, ended := n.Exited(); !ended || code != -1 || n.Running() || l.Health()["n1"].Up {
		t.Errorf("killed: exited %v with %d, running %v, %+v", ended, code, n.Running(), l.Health()["n1"])
	}
	start(t, l, n)
	if code, err := n.Stop(patience); code != -1 || err != nil { // it takes no signal, so the signal ends it
		t.Errorf("stopped with %d: %v", code, err)
	}
	if log, err := io.ReadAll(n.Log()); strings.Count(string(log), "ready") != 2 || err != nil {
		t.Errorf("its log has not both its lives: %q, %v", log, err)
	}
	if err := n.Start("--fail"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node has failed", func() bool { code, ended := n.Exited(); return ended && code == 3 })
}

func TestANodeHasTheOlderBinaryOnlyWhereThereIsOne(t *testing.T) {
	l := open(t, Options{Nodes: 1, Proxy: true, NoOlder: "nobody kept it"})
	n := l.Node("n1")
	must(t, n.Kill())
	if err := n.StartOlder(); !errors.Is(err, ErrUnable) || !strings.Contains(err.Error(), "nobody kept it") || n.Running() {
		t.Errorf("%v", err)
	}
	older, err := echo()
	must(t, err)
	l = open(t, Options{Nodes: 1, Proxy: true, Older: older})
	n = l.Node("n1")
	must(t, n.Kill())
	if must(t, n.StartOlder()); !n.Older() || l.Able(Older) != nil {
		t.Errorf("older: %v, able: %v", n.Older(), l.Able(Older))
	}
	must(t, n.Kill())
	if must(t, n.Start()); n.Older() {
		t.Error("it is older still")
	}
}

func TestAPausedNodeIsNotUp(t *testing.T) {
	l := open(t, Options{Nodes: 1, Proxy: true})
	must(t, l.Node("n1").Pause())
	eventually(t, "it does not answer", func() bool { _, err := ask(l, "n1", "?"); return err != nil })
	if l.Health()["n1"].Up {
		t.Error("a paused node is said to be up")
	}
	must(t, l.Heal())
	if answer(t, l, "n1", "?"); !l.Health()["n1"].Up {
		t.Error("a node that goes on is not up")
	}
}
