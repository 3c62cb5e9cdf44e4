package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slack is how far a reading may lag behind.
const slack = 2 * time.Second

// The wall clock of one node moves; its monotonic one and the machine's do not.
func TestTheWallClockOfOneNodeMoves(t *testing.T) {
	l := open(t, Options{Nodes: 2, Proxy: true, Clocks: true})
	read := func(id string) (ahead time.Duration, mono int64) {
		t.Helper()
		var wall int64
		if _, err := fmt.Sscan(answer(t, l, id, "now"), &wall, &mono); err != nil {
			t.Fatal(err)
		}
		return time.Duration(wall - time.Now().UnixNano()), mono
	}
	n := l.Node("n2")
	for _, d := range []time.Duration{-time.Hour, 2 * time.Hour, 87600 * time.Hour, -87601 * time.Hour} {
		before, _ := read("n2")
		must(t, n.JumpWall(d))
		after, mono := read("n2")
		if moved := after - before; moved < d-slack || moved > d+slack || mono < 50 || mono > 1000 {
			t.Errorf("moved by %v, want %v; 50 ms were %d", moved, d, mono)
		}
	}
	must(t, n.Kill())
	must(t, n.JumpWall(time.Hour))
	if start(t, l, n); true {
		if ahead, _ := read("n2"); ahead < time.Hour-slack || ahead > time.Hour+slack {
			t.Errorf("after a restart it is %v ahead, want 1h", ahead)
		}
	}
	if ahead, _ := read("n1"); ahead < -slack || ahead > slack {
		t.Errorf("n1's clock moved too: %v", ahead)
	}
	must(t, n.DriftWall(101))
	before, _ := read("n2")
	eventually(t, "a clock that is a hundred times too fast has gained 10 s", func() bool {
		ahead, mono := read("n2")
		return ahead-before > 10*time.Second && mono < 1000
	})
	must(t, n.DriftWall(1))
	before, _ = read("n2")
	if after, _ := read("n2"); after-before > time.Second || after-before < -time.Second {
		t.Errorf("it still drifts: by %v", after-before)
	}
}

// A quota is the kernel's: the process waits whenever its share is used up.
func TestAQuotaBoundsOneNode(t *testing.T) {
	l := open(t, Options{Nodes: 1})
	if err := l.Able(CPUQuota); err != nil {
		t.Skip("NOT TESTED: ", err)
	}
	n := l.Node("n1").(*node)
	busy := func() (ms int, waited bool) {
		t.Helper()
		before := throttled(t, n)
		ms, err := strconv.Atoi(answer(t, l, "n1", "busy 300"))
		must(t, err)
		return ms, throttled(t, n) > before
	}
	for _, restart := range []bool{false, true} {
		must(t, n.CPU(0.01))
		if restart {
			must(t, n.Kill())
			start(t, l, n)
		}
		eventually(t, "the kernel has it wait", func() bool {
			ms, waited := busy()
			if ms > 100 {
				t.Errorf("with a bound it got %d ms of 300", ms)
			}
			return waited
		})
		if l.Health()["n1"].Up {
			t.Error("a node without its share of the processor is up")
		}
		must(t, l.Heal())
		if _, waited := busy(); waited || !l.Health()["n1"].Up {
			t.Errorf("healed: it still has to wait: %v; %+v", waited, l.Health()["n1"])
		}
	}
}

// throttled is how often the kernel had a node wait for its quota.
func throttled(t *testing.T, n *node) (times int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(n.quota.dir, "cpu.stat"))
	must(t, err)
	_, rest, ok := strings.Cut(string(b), "nr_throttled ")
	if _, err := fmt.Sscan(rest, &times); !ok || err != nil {
		t.Fatalf("cpu.stat: %q", b)
	}
	return times
}

func TestALibraryThatIsNotAsItWasIsRefused(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	for _, c := range changes {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(src, c.file)), 0o700))
		must(t, os.WriteFile(filepath.Join(src, c.file), []byte(c.line), 0o600))
	}
	if _, err := writeOverlay(src, dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		for _, text := range []string{"", c.line + c.line} {
			file := filepath.Join(src, c.file)
			must(t, os.WriteFile(file, []byte(text), 0o600))
			if _, err := writeOverlay(src, dir); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("%s with the line %d times: %v", c.file, strings.Count(text, c.line), err)
			}
			must(t, os.WriteFile(file, []byte(c.line), 0o600))
		}
	}
}
