package lab

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func exists(n Node, file string) bool {
	_, err := os.Stat(filepath.Join(n.Data(), file))
	return err == nil
}

func TestAPowerCutLosesWhatWasNotSynced(t *testing.T) {
	l := open(t, Options{Nodes: 1, Disks: true})
	n := l.Node("n1")
	answer(t, l, "n1", "sync kept")
	answer(t, l, "n1", "write lost")
	must(t, n.PowerCut())
	if n.Running() || l.Health()["n1"].Up {
		t.Fatal("it runs without power")
	}
	start(t, l, n)
	if !exists(n, "kept") || exists(n, "lost") {
		t.Errorf("synced: %v, want true; not synced: %v, want false", exists(n, "kept"), exists(n, "lost"))
	}
	if !l.Health()["n1"].Disk {
		t.Error("with power again, the disk is said to be broken")
	}
	must(t, n.PowerCut())
	must(t, l.Heal()) // a lab can be healed, and closed, while a node has no power
}

func TestADiskFillsUpAndHangs(t *testing.T) {
	l := open(t, Options{Nodes: 2, Disks: true})
	n := l.Node("n1")
	must(t, n.Fill(0))
	if got := answer(t, l, "n1", "sync full"); got != "false" || l.Health()["n1"].Disk {
		t.Errorf("a write to a full disk: %s; %+v", got, l.Health()["n1"])
	}
	if got := answer(t, l, "n2", "sync file"); got != "true" || !l.Health()["n2"].Disk {
		t.Errorf("a write to another node's disk: %s", got)
	}
	must(t, n.Drain())
	must(t, n.Stall(true))
	if got, err := ask(l, "n1", "sync stalled"); err == nil || l.Health()["n1"].Disk {
		t.Errorf("a disk that hangs answered %q", got)
	}
	must(t, n.Stall(false))
	if got := answer(t, l, "n1", "sync again"); got != "true" || !exists(n, "stalled") {
		t.Errorf("after it: %s; what waited was written: %v", got, exists(n, "stalled"))
	}
}

// A node is killed while its disk hangs, and the lab is healed.
func TestAHangingDiskDoesNotKeepItsNode(t *testing.T) {
	l := open(t, Options{Nodes: 1, Disks: true})
	n := l.Node("n1")
	must(t, n.Stall(true))
	ask(l, "n1", "sync stalled")
	must(t, n.PowerCut())
	start(t, l, n)
	if got := answer(t, l, "n1", "sync again"); got != "true" {
		t.Error("no write after it")
	}
}

func TestWritesAreMadeToFail(t *testing.T) {
	l := open(t, Options{Nodes: 1})
	if err := l.Able(SlowDisk); err != nil {
		if os.Getenv("LIMITD_REQUIRE_ROOT") != "" {
			t.Fatal(err)
		}
		t.Skip("NOT TESTED: ", err)
	}
	n := l.Node("n1")
	must(t, n.Inject("fsync:error=EIO"))
	if got := answer(t, l, "n1", "sync raft.db"); got != "false" || l.Health()["n1"].Disk {
		t.Errorf("a sync that fails: %s; %+v", got, l.Health()["n1"])
	}
	if got := answer(t, l, "n1", "sync another"); got != "true" {
		t.Error("another file fails too")
	}
	must(t, n.Inject(""))
	if got := answer(t, l, "n1", "sync raft.db"); got != "true" || !l.Health()["n1"].Disk {
		t.Errorf("a sync after it: %s", got)
	}
	must(t, n.Inject("fsync:error=EIO"))
	must(t, n.Kill())
	if start(t, l, n); !l.Health()["n1"].Disk {
		t.Error("the fault was for another process")
	}
}

func TestDamageChangesOneFile(t *testing.T) {
	l := open(t, Options{Nodes: 1, Disks: true})
	n := l.Node("n1")
	answer(t, l, "n1", "sync file")
	if err := n.Damage(Damage{File: "file", How: "flip"}); err == nil {
		t.Error("the files of a running node were damaged")
	}
	must(t, n.Kill())
	file := filepath.Join(n.Data(), "file")
	whole := bytes.Repeat([]byte("x"), 10_000)
	differ := func(b []byte) (bytes int) {
		for i := range b {
			if b[i] != whole[i] {
				bytes++
			}
		}
		return bytes
	}
	for how, want := range map[string]func([]byte) bool{
		"flip":     func(b []byte) bool { return len(b) == len(whole) && differ(b) == 1 },
		"truncate": func(b []byte) bool { return len(b) < len(whole) && differ(b) == 0 },
		"zero":     func(b []byte) bool { return len(b) == len(whole) && (differ(b) == 4096 || differ(b) == 10_000-8192) },
		"remove":   func(b []byte) bool { return !exists(n, "file") },
	} {
		for seed := range uint64(5) {
			must(t, os.WriteFile(file, whole, 0o600))
			must(t, n.Damage(Damage{File: "file", How: how, Seed: seed}))
			if b, _ := os.ReadFile(file); !want(b) {
				t.Errorf("%s, seed %d: %d bytes, %d of them others", how, seed, len(b), differ(b))
			}
		}
	}
	for _, d := range []Damage{{File: "missing", How: "flip"}, {File: "file", How: "burn"}} {
		if err := n.Damage(d); err == nil {
			t.Errorf("%+v was done", d)
		}
	}
	must(t, n.Wipe())
	if start(t, l, n); exists(n, "file") {
		t.Error("a file outlived the wipe")
	}
}

func TestWhatALabLacksIsSaid(t *testing.T) {
	l := open(t, Options{Nodes: 1, Proxy: true})
	n := l.Node("n1")
	for what, err := range map[string]error{
		"power cut": n.PowerCut(), "fill": n.Fill(0), "drain": n.Drain(), "stall": n.Stall(true), "jump": n.JumpWall(1), "drift": n.DriftWall(2),
		"able power cut": l.Able(PowerCut), "able wall time": l.Able(WallTime),
	} {
		if !errors.Is(err, ErrUnable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
