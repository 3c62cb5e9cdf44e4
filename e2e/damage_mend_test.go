package e2e

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// mend types what a refusal tells the operator to: what stands in `backquotes` between
// from and to. It returns the flags with which the node is to be started.
func (c *cluster) mend(nd *node, from, to string) (flags []string) {
	c.t.Helper()
	last := tail(nd.out.String(), 1)
	_, text, found := strings.Cut(last, from)
	text, _, ends := strings.Cut(text, to)
	if !found || !ends {
		c.t.Fatalf("%s does not say what to do between %q and %q:\n%s", nd.id, from, to, last)
	}
	lines := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1)
	if len(lines) == 0 {
		c.t.Fatalf("%s has no line to type:\n%s", nd.id, text)
	}
	for _, l := range lines {
		c.t.Logf("typed: %s", l[1])
		words := strings.Fields(l[1])
		switch words[0] {
		case "limitd":
			if out, stderr, code := limitd(c.t, words[1:]...); code != 0 {
				c.t.Fatalf("%s: code %d: %s%s", l[1], code, out, stderr)
			}
		case "mv":
			if out, err := exec.Command("mv", words[1:]...).CombinedOutput(); err != nil {
				c.t.Fatalf("%s: %v: %s", l[1], err, out)
			}
		default:
			flags = append(flags, words...)
		}
	}
	return flags
}

// joinAs starts a node with the flags that it was told, and waits until it is level.
func (c *cluster) joinAs(nd *node, through *node, flags ...string) {
	c.t.Helper()
	nd.process = launch(c.t, c.dir, nd.id, append(nd.args, flags...)...)
	if _, stderr, code := limitd(c.t, "cluster", "wait", nd.id, "--addr", through.resp); code != 0 {
		c.t.Fatalf("cluster wait %s: %s", nd.id, stderr)
	}
}

// ruin makes the log of a stopped node one that no start can mend, starts it, and
// waits for the refusal.
func (c *cluster) ruin(t *testing.T, nodes ...*node) {
	t.Helper()
	d := damage{newestSegment, "cut in the middle", func(now, _ []byte) []byte { return now[:used(now)/2] }, true}
	for _, nd := range nodes {
		d.on(t, nd.data, nil)
		c.start(nd)
	}
	for _, nd := range nodes {
		if !refused(t, nd, d) {
			t.Fatalf("%s was taken for whole", nd.id)
		}
		checkRefusal(nd, d)
	}
}

// What a damaged node of three tells to type brings it back, under load.
func TestRefusalOfOneNodeSaysWhatMendsIt(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	tr := startTraffic(t, 1, twoKeys, c.nodes...)
	victim := c.others(c.leader())[0]
	victim.kill()
	c.ruin(t, victim)
	tr.flows("without the damaged node")
	flags := c.mend(victim, "To replace it: ", "If too few nodes are well")
	c.joinAs(victim, c.leader(), flags...)
	tr.flows("with the new node")
	c.awaitSameHash(c.nodes...)
	tr.check(victim)
}

// Two of three are damaged: the one that is whole is recovered, and the others come
// back to it. What it had when it was stopped is kept.
func TestTwoDamagedNodesOfThree(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	tr := startTraffic(t, 1, twoKeys, c.nodes...)
	tr.end()
	c.awaitSameHash(c.nodes...)
	whole := c.leader()
	damaged := c.others(whole)
	for _, nd := range c.nodes {
		nd.terminate()
	}
	c.start(whole)
	c.ruin(t, damaged...)
	if r, err := whole.r.throttle("wide", 999_999, 1, 3600, 1); err == nil {
		t.Errorf("one node of three decided: %v", r)
	}
	if last := tail(damaged[0].out.String(), 1); !strings.Contains(last, "`limitd recover`") {
		t.Errorf("the refusal does not speak of a recovery:\n%s", last)
	}
	whole.terminate()
	if _, stderr, code := limitd(t, "recover", "--data-dir", whole.data, "--peers", c.file, "--yes"); code != 0 {
		t.Fatalf("limitd recover: %s", stderr)
	}
	c.start(whole)
	c.awaitDecides(whole)
	for _, nd := range damaged {
		if out, err := exec.Command("mv", nd.data, nd.data+".damaged").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		c.joinAs(nd, whole, "--join", whole.resp)
	}
	c.awaitSameHash(c.nodes...)
	tr.check(damaged[0])
}

// All are damaged: a saved snapshot, which lies in one of the directories, becomes a
// new cluster.
func TestAllNodesAreDamagedAndASavedSnapshotIsThere(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		c := startCluster(t, n)
		var all tally
		for range 20 {
			all.call(c.nodes[0].r, "k", 100)
		}
		if _, stderr, code := limitd(t, "snapshot", "save", "--addr", c.nodes[0].resp); code != 0 {
			t.Fatalf("snapshot save: %s", stderr)
		}
		for _, nd := range c.nodes {
			nd.kill()
		}
		c.ruin(t, c.nodes...)
		first, from := c.nodes[0], "if none is: "
		if n == 1 {
			from = "If this node is the only one: "
		}
		to := map[int]string{1: "If it is one of several", 3: ", and the others join"}[n]
		if flags := c.mend(first, from, to); len(flags) > 0 {
			t.Errorf("flags %v for the first node", flags)
		}
		c.start(first)
		c.awaitDecides(first)
		for _, nd := range c.others(first) {
			if out, err := exec.Command("mv", nd.data, nd.data+".damaged").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			c.joinAs(nd, first, "--join", first.resp)
		}
		checkCount(t, c.nodes[n-1].r, "k", 100, all)
		if err := c.nodes[n-1].r.Do(context.Background(), "CL.THROTTLE", "other", 9, 1, 60).Err(); err != nil {
			t.Error(err)
		}
	}
}
