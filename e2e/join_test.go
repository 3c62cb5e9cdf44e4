package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alone is a node that is started by flags, without an id, as a cluster of one.
func alone(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir()}
	ports := reservePorts(t, 2)
	nd := &node{resp: addr(ports[0]), peer: addr(ports[1]), r: dial(t, addr(ports[0])), data: filepath.Join(c.dir, "first")}
	nd.args = []string{"serve", "--listen", nd.resp, "--peer-listen", nd.peer, "--data-dir", nd.data}
	c.nodes = []*node{nd}
	return c
}

// list adds a node to the configuration file, and returns it; nobody has read that yet.
func (c *cluster) list(id string) *node {
	c.t.Helper()
	ports := reservePorts(c.t, 2)
	nd := &node{id: id, resp: addr(ports[0]), peer: addr(ports[1]), r: dial(c.t, addr(ports[0])), data: filepath.Join(c.dir, id)}
	nd.args = []string{"serve", "--config", c.file, "--node", id}
	file, err := os.OpenFile(c.file, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(file, "[[node]]\nid = %q\nresp = %q\npeer = %q\ndata = %q\n", nd.id, nd.resp, nd.peer, nd.data)
		file.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes = append(c.nodes, nd)
	return nd
}

// without is the arguments up to a flag.
func without(args []string, flag string) []string {
	for i, a := range args {
		if a == flag {
			return args[:i:i]
		}
	}
	return args
}

// TestASingleNodeGrowsToThree: the first node was started by flags as a cluster of
// one, and must behave as one of three from the moment that it is.
func TestASingleNodeGrowsToThree(t *testing.T) {
	t.Parallel()
	c := alone(t)
	first := c.nodes[0]
	c.start(first)
	c.awaitDecides(first)
	first.id, _ = first.r.status()["id"].(string)
	n2, n3 := c.newcomer("n2", first), c.newcomer("n3", first)
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	c.start(n2)
	c.start(n3)
	c.awaitVoters(30*time.Second, c.nodes...)
	tr.flows("with three nodes")

	// The leader that stops hands over, though its flags tell of nobody to hand over to.
	before := tr.sum()
	began := time.Now()
	first.terminate()
	if took := time.Since(began); took < 1500*time.Millisecond {
		t.Errorf("it stopped after %v and did not answer until the others lead:\n%s", took, tail(first.out.String(), 5))
	}
	tr.flows("without the first node")
	after := tr.sum()
	after.inDoubt -= before.inDoubt
	undoubted(t, "after an orderly stop", after, began)

	// Each of them starts again from its directory, with --join or without.
	c.start(first)
	c.awaitDecides(first)
	n2.terminate()
	n2.args = without(n2.args, "--join")
	c.start(n2)
	c.awaitDecides(n2)
	n3.terminate()
	c.start(n3)
	c.awaitDecides(n3)
	c.awaitVoters(10*time.Second, c.nodes...)
	tr.check(n2)
	c.awaitSameHash(c.nodes...)
}

// TestAListedNodeWaitsUntilItIsTakenIn: a node that was added to the file after the
// cluster was founded says what to type, and that is enough.
func TestAListedNodeWaitsUntilItIsTakenIn(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	n4 := c.list("n4")
	c.start(n4)
	line := "limitd cluster join n4 " + n4.peer + " --addr "
	c.says(n4, line)
	if _, err := n4.r.throttle("k", 9, 1, 60, 1); code(err) != "CLUSTERDOWN" {
		t.Errorf("a client of a node that waits is told %v", err)
	}
	if role := n4.r.status()["role"]; role != "waiting" {
		t.Errorf("a node that waits has the role %v", role)
	}
	if _, ok := c.nodes[0].r.members()["n4"]; ok {
		t.Error("it is a member before anybody has taken it in")
	}

	_, typed, _ := strings.Cut(n4.out.String(), line)
	typed, _, _ = strings.Cut(typed, `"`)
	if stdout, stderr, code := limitd(t, strings.Fields("cluster join n4 "+n4.peer+" --addr "+typed)...); code != 0 {
		t.Fatalf("%s%s: code %d %s%s", line, typed, code, stdout, stderr)
	}
	c.awaitVoters(30*time.Second, c.nodes...)
	c.change(c.nodes[1], "join", "n4", n4.peer) // done already, and no error

	n5 := c.list("n5")
	plain := n5.args
	n5.args = append(plain[:len(plain):len(plain)], "--join", n4.resp, "--non-voter")
	c.start(n5)
	c.awaitDecides(n5)
	c.awaitVoters(10*time.Second, c.nodes[:4]...)
	eventually(t, 10*time.Second, "n5 knows that it has no vote", func() bool { return n5.r.status()["role"] == "nonvoter" })
	n4.terminate()
	n5.terminate()
	n5.args = plain
	c.start(n4)
	c.start(n5)
	c.awaitDecides(n4)
	c.awaitDecides(n5)
	tr.check(n5)
	c.awaitSameHash(c.nodes...)
}

// TestANodeThatJoinsThroughNobody waits, says so to its log and its clients, and
// can be stopped; it founds no cluster of its own whatever the flags are next time.
func TestANodeThatJoinsThroughNobody(t *testing.T) {
	t.Parallel()
	c := alone(t)
	first := c.nodes[0]
	n2 := c.newcomer("n2", first) // which does not run
	c.start(n2)
	c.says(n2, "waiting to be taken in")
	began := time.Now()
	if _, err := n2.r.throttle("k", 9, 1, 60, 1); code(err) != "CLUSTERDOWN" {
		t.Errorf("a client is told %v", err)
	}
	within(t, "an answer of a node without a cluster", 2*time.Second, time.Since(began), began)
	if role := n2.r.status()["role"]; role != "joining" {
		t.Errorf("a node that asks to be taken in has the role %v", role)
	}
	began = time.Now()
	n2.terminate()
	within(t, "its stop", 3*time.Second, time.Since(began), began)

	joining := n2.args
	n2.args = without(joining, "--join")
	c.start(n2)
	c.ends(n2, 2, "--join")
	n2.args = joining
	c.start(n2)
	c.says(n2, "waiting to be taken in")
	c.start(first)
	c.awaitDecides(first)
	tr := startTraffic(t, 2, twoKeys, first, n2)
	eventually(t, 20*time.Second, "n2 has a vote", func() bool { return first.r.isVoter("n2") })
	c.awaitDecides(n2)
	tr.check(n2)
	c.awaitSameHash(first, n2)
}

// TestANodeThatIsNotTakenInSaysWhy: the reason is final, so it ends with an error,
// which is no fail-stop.
func TestANodeThatIsNotTakenInSaysWhy(t *testing.T) {
	t.Parallel()
	c := alone(t)
	first := c.nodes[0]
	c.start(first)
	c.awaitDecides(first)
	first.id, _ = first.r.status()["id"].(string)
	x := c.newcomer(first.id, first)
	x.data = filepath.Join(c.dir, "second")
	for i, a := range x.args {
		if a == "--data-dir" {
			x.args[i+1] = x.data
		}
	}
	c.start(x)
	c.ends(x, 2, "the cluster does not take this node in", "limitd cluster remove "+first.id)
	c.awaitDecides(first)
}

// TestALeaderThatLeavesAnswersFirst: what its clients have sent is answered, nothing
// is in doubt, and the code says that it went as it was asked to.
func TestALeaderThatLeavesAnswersFirst(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	stay := c.others(leader)
	tr := startTraffic(t, 4, twoKeys, c.nodes...)
	c.change(leader, "leave")
	c.ends(leader, 0, "left the cluster")
	tr.flows("after the leader left")
	undoubted(t, "after an orderly leave", tr.sum(), tr.began)
	c.awaitVoters(10*time.Second, stay...)
	tr.check(stay[0])
	c.awaitSameHash(stay...)
}

// TestTheLastOfThreeIsANodeOfItsOwn: its file still lists three, and it waits for
// nobody, when it starts and when it stops.
func TestTheLastOfThreeIsANodeOfItsOwn(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	last := c.leader()
	tr := startTraffic(t, 2, twoKeys, c.nodes...)
	for _, goes := range c.others(last) {
		c.change(last, "remove", goes.id)
		c.ends(goes, 3, "removed")
	}
	tr.flows("at the only voter")

	tr.end() // a client that is answered until the end would hide how long it waits
	began := time.Now()
	if err := last.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := last.wait(10 * time.Second); code != 0 {
		t.Errorf("code %d", code)
	}
	within(t, "a stop with nobody to hand over to", 1500*time.Millisecond, time.Since(began), began)
	began = time.Now()
	c.start(last)
	eventually(t, 20*time.Second, "the first connection", func() bool {
		_, err := last.r.throttle("limitd:ready", 0, 1, 1, 0)
		if code(err) != "" && machine.calm(began) {
			t.Fatalf("it accepted a connection before it could decide: %v", err)
		}
		return err == nil
	})
	tr.check(last)
}
