package lab

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// fastest is the shortest of a few round trips on a connection that is open already.
// The shortest says what the link does; longer ones, what the machine was busy with.
func fastest(t *testing.T, l Lab, id string) time.Duration {
	t.Helper()
	c, err := l.Network().Dial(id, RESPPort, patience)
	must(t, err)
	defer c.Close()
	best := time.Hour
	for range 6 {
		begun := time.Now()
		if _, err := exchange(c, "?", patience); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(begun))
	}
	return best
}

func TestLinksAreAsSlowAsTheyAreMade(t *testing.T) {
	l := open(t, Options{Nodes: 2, Slow: true})
	const d, slack = 100 * time.Millisecond, 60 * time.Millisecond
	for _, tt := range []struct {
		name     string
		links    map[Cut]Quality
		n1, n2   time.Duration // least round trips
		well     bool
		jittered time.Duration
	}{
		{name: "as ever", well: true},
		{name: "one way", links: map[Cut]Quality{{From: Client, To: "n1"}: {Delay: d}}, n1: d},
		{name: "both ways", links: map[Cut]Quality{{From: Client, To: "n1"}: {Delay: d}, {From: "n1", To: Client}: {Delay: d}}, n1: 2 * d},
		{name: "the other node", links: map[Cut]Quality{{From: "n2", To: Client}: {Delay: d}}, n2: d, well: true},
		{name: "jitter", links: map[Cut]Quality{{From: Client, To: "n1"}: {Delay: d, Jitter: d / 2}}, n1: d / 2, jittered: d / 2},
		{name: "healed", well: true},
	} {
		must(t, l.Network().Shape(tt.links))
		for id, want := range map[string]time.Duration{"n1": tt.n1, "n2": tt.n2} {
			if got := fastest(t, l, id); got < want || got > want+slack+tt.jittered {
				t.Errorf("%s: the fastest round trip to %s took %v, want %v or a little more", tt.name, id, got, want)
			}
		}
		if got := l.Health()["n1"].Client; got != tt.well {
			t.Errorf("%s: clients are said to reach n1: %v", tt.name, got)
		}
	}
}

func TestANarrowLinkTakesItsTime(t *testing.T) {
	l := open(t, Options{Nodes: 1, Slow: true})
	must(t, l.Network().Shape(map[Cut]Quality{{From: Client, To: "n1"}: {BytesPerSec: 100_000}}))
	c, err := l.Network().Dial("n1", RESPPort, patience)
	must(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(15 * time.Second))
	begun := time.Now()
	fmt.Fprintln(c, strings.Repeat("x", 50_000))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 450*time.Millisecond || took > 5*time.Second {
		t.Errorf("50 kB at 100 kB/s took %v", took)
	}
}

// Some frames are lost, and TCP gets everything across all the same.
func TestALossyLinkLosesSomeFrames(t *testing.T) {
	l := open(t, Options{Nodes: 1, Slow: true, Seed: 1})
	link := map[Cut]Quality{{From: Client, To: "n1"}: {Loss: 1}}
	c, err := l.Network().Dial("n1", RESPPort, patience)
	must(t, err)
	defer c.Close()
	must(t, l.Network().Shape(link))
	if said, err := exchange(c, "?", impatience); err == nil {
		t.Errorf("all frames are lost, and the answer is %q", said)
	}
	link[Cut{From: Client, To: "n1"}] = Quality{Loss: 0.1}
	must(t, l.Network().Shape(link))
	c.SetDeadline(time.Now().Add(30 * time.Second))
	go fmt.Fprint(c, strings.Repeat("?\n", 30_000))
	if _, err := io.CopyN(io.Discard, c, 60_002); err != nil {
		t.Errorf("with one frame of ten lost: %v", err)
	}
}

// A cut of the switch and a delay do not undo each other.
func TestCutsAndDelaysAreApart(t *testing.T) {
	l := open(t, Options{Nodes: 1, Slow: true})
	must(t, l.Network().Shape(map[Cut]Quality{{From: Client, To: "n1"}: {Delay: 50 * time.Millisecond}}))
	must(t, l.Network().Cut(both("n1", Client, AnyPort)))
	if _, err := ask(l, "n1", "?"); err == nil {
		t.Error("a slow link is not cut")
	}
	must(t, l.Network().Cut(nil))
	if got := fastest(t, l, "n1"); got < 50*time.Millisecond {
		t.Errorf("the delay is gone with the cut: %v", got)
	}
}

func TestDelaysNeedTheSwitch(t *testing.T) {
	for _, kind := range networks {
		t.Run(kind.name, func(t *testing.T) {
			kind.o.Nodes = 1
			l := open(t, kind.o)
			err := l.Network().Shape(map[Cut]Quality{{From: Client, To: "n1"}: {Delay: time.Millisecond}})
			if able := l.Able(Delay); errors.Is(err, ErrUnable) == kind.o.Slow || errors.Is(able, ErrUnable) == kind.o.Slow {
				t.Errorf("shape: %v; able: %v", err, able)
			}
		})
	}
}
