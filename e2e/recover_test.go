package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// printed are the names and values that a verb printed, one pair a line.
func printed(out string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			fields[name] = strings.TrimSpace(value)
		} else if name == "" {
			break // the text begins
		}
	}
	return fields
}

// recoverNode looks at the data of a stopped node, then recovers it.
func (c *cluster) recoverNode(nd *node) map[string]string {
	c.t.Helper()
	args := []string{"recover", "--data-dir", nd.data, "--peers", c.file}
	out, stderr, code := limitd(c.t, args...)
	looked := printed(out)
	if code != 0 || looked["node"] != nd.id || !strings.Contains(out, "Nothing was changed.") {
		c.t.Fatalf("limitd recover without --yes: code %d\n%s%s", code, out, stderr)
	}
	out, stderr, code = limitd(c.t, append(args, "--yes")...)
	did := printed(out)
	if code != 0 {
		c.t.Fatalf("limitd recover --yes: code %d: %s", code, stderr)
	}
	c.t.Logf("limitd recover printed:\n%s", out)
	for name, value := range looked {
		if did[name] != value {
			c.t.Errorf("%s was %q, with --yes %q", name, value, did[name])
		}
	}
	for _, line := range []string{"Kept: ", "Lost: ", "limitd serve --config " + c.file + " --node " + nd.id + "\n"} {
		if !strings.Contains(out, line) {
			c.t.Errorf("limitd recover does not print %q", line)
		}
	}
	return did
}

// roles are the raft roles of the members, by id, as the node sees them.
func (nd *node) roles() map[string]string {
	roles := map[string]string{}
	rows, err := nd.r.Do(context.Background(), "RL.CLUSTER", "NODES").Slice()
	if err != nil {
		return roles
	}
	for _, row := range rows {
		fields := map[any]any{}
		for i, flat := 0, row.([]any); i+1 < len(flat); i += 2 {
			fields[flat[i]] = flat[i+1]
		}
		if fields["raft_id"] != "" {
			roles[fmt.Sprint(fields["id"])] = fmt.Sprint(fields["role"])
		}
	}
	return roles
}

// joinEmpty starts a node with an empty directory and waits until it has its vote.
func (c *cluster) joinEmpty(nd, through *node) {
	c.t.Helper()
	if err := os.RemoveAll(nd.data); err != nil {
		c.t.Fatal(err)
	}
	nd.process = launch(c.t, c.dir, nd.id, append(nd.args, "--join", through.resp)...)
	eventually(c.t, 30*time.Second, nd.id+" is a voter", func() bool {
		if !nd.running() {
			c.t.Fatalf("%s has ended:\n%s", nd.id, tail(nd.out.String(), 10))
		}
		role := through.roles()[nd.id]
		return role == "voter" || role == "leader"
	})
}

// TestASurvivorIsRecoveredAndNothingMixes loses two of three nodes under load for
// good, recovers the third, lets the two come back with their old data, and then
// with none.
func TestASurvivorIsRecoveredAndNothingMixes(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"leader", "follower"} {
		t.Run(role, func(t *testing.T) {
			if role == "follower" && testing.Short() {
				t.Skip("NOT TESTED in the short form: a follower that is recovered, the leader is")
			}
			t.Parallel()
			recoverUnderLoad(t, role)
		})
	}
}

func recoverUnderLoad(t *testing.T, role string) {
	const limit = 1_000_000
	c := startCluster(t, 3)
	survivor := c.leader()
	if role == "follower" {
		survivor = c.others(survivor)[0]
	}
	lost := c.others(survivor)
	all := []string{c.nodes[0].resp, c.nodes[1].resp, c.nodes[2].resp}

	// What all three have, and what is under way when the two die.
	l := startLoad(t, "k", limit, 2, all...)
	eventually(t, 20*time.Second, "answers", func() bool { return l.answers() > 300 })
	l.end()
	before := l.sum()
	c.awaitSameHash(c.nodes...)
	l = startLoad(t, "k", limit, 4, all...)
	eventually(t, 20*time.Second, "answers", func() bool { return l.answers() > 300 })
	for _, nd := range lost {
		nd.kill()
	}
	l.end()
	during := l.sum()
	survivor.kill()
	old := map[*node]string{}
	for _, nd := range lost {
		old[nd] = filepath.Join(t.TempDir(), nd.id)
		if err := os.Rename(nd.data, old[nd]); err != nil {
			t.Fatal(err)
		}
	}

	did := c.recoverNode(survivor)
	if did["generation"] != "1" || did["new_generation"] != "2" || did["raft_id"] == did["new_raft_id"] {
		t.Errorf("it printed %v", did)
	}
	c.start(survivor)
	c.awaitDecides(survivor)
	count := before
	count.add(during)
	left := survivor.r.mustThrottle("k", limit-1, 1, 3600, 0)[2]
	if role == "leader" { // it had all that was answered
		checkCount(t, survivor.r, "k", limit, count)
	} else if used := limit - left; used < before.allowed || used > count.allowed+count.inDoubt+count.broken {
		t.Errorf("%d are used; %d were allowed when all had them, then %v", used, before.allowed, during)
	}

	// The old ones come back, a majority of the old members. They may admit among
	// themselves; the survivor counts on.
	for _, nd := range lost {
		if err := os.CopyFS(nd.data, os.DirFS(old[nd])); err != nil {
			t.Fatal(err)
		}
		c.start(nd)
	}
	for _, nd := range lost {
		c.awaitDecides(nd)
	}
	var ghosts tally
	l = startLoad(t, "k", limit, 2, survivor.resp)
	for i := range 60 {
		ghosts.call(lost[i%2].r, "ghost", limit)
		ghosts.call(lost[i%2].r, "k", limit)
	}
	for _, nd := range append(lost, survivor) {
		eventually(t, 20*time.Second, nd.id+" says what is wrong", func() bool {
			text := nd.out.String()
			return strings.Contains(text, "of generation 1 of the cluster") && strings.Contains(text, "of generation 2: the cluster was recovered without") && strings.Contains(text, "--join")
		})
	}
	eventually(t, 20*time.Second, "answers of the survivor", func() bool { return l.answers() > 100 })
	l.end()
	after := l.sum()
	if r := survivor.r.mustThrottle("k", limit-1, 1, 3600, 0); r[2] != left-after.allowed || after.inDoubt+after.broken > 0 {
		t.Errorf("%d left, want %d minus what was allowed: %v", r[2], left, after)
	}
	if r := survivor.r.mustThrottle("ghost", limit-1, 1, 3600, 0); r[2] != limit || ghosts.allowed == 0 {
		t.Errorf("%d left of a key that only the old nodes charged: %v", r[2], ghosts)
	}
	if roles := survivor.roles(); len(roles) != 1 || roles[survivor.id] != "leader" {
		t.Errorf("the members are %v", roles)
	}

	// They join with nothing, under load.
	left = survivor.r.mustThrottle("k", limit-1, 1, 3600, 0)[2]
	l = startLoad(t, "k", limit, 1, survivor.resp)
	for _, nd := range lost {
		nd.kill()
		c.joinEmpty(nd, survivor)
	}
	for _, nd := range lost {
		c.awaitDecides(nd)
	}
	l.end()
	joined := l.sum()
	if len(joined.strange) > 0 {
		t.Errorf("%v", joined)
	}
	most := left - joined.allowed
	for _, nd := range c.nodes {
		if r := nd.r.mustThrottle("k", limit-1, 1, 3600, 0); r[2] > most || r[2] < most-joined.inDoubt-joined.broken {
			t.Errorf("%s: %d left, want %d: %v", nd.id, r[2], most, joined)
		}
		if r := nd.r.mustThrottle("ghost", limit-1, 1, 3600, 0); r[2] != limit {
			t.Errorf("%s: %d left of a key that only the old nodes charged", nd.id, r[2])
		}
	}
	c.awaitSameHash(c.nodes...)

	// And it is a cluster like any other: it loses one and goes on.
	survivor.kill()
	c.awaitDecides(lost[0])
}

// TestASavedStateBecomesANewCluster restores a saved state at the address of a node
// of the old cluster, which goes on without it.
func TestASavedStateBecomesANewCluster(t *testing.T) {
	t.Parallel()
	const limit = 1_000_000
	c := startCluster(t, 3)
	saved := make([]tally, 20) // by key
	for i := range 200 {
		saved[i%20].call(c.nodes[i%3].r, fmt.Sprint("key:", i%20), limit)
	}
	leader := c.leader()
	file, stderr, code := limitd(t, "snapshot", "save", "--addr", leader.resp)
	if code != 0 {
		t.Fatal(stderr)
	}
	file = strings.TrimSpace(file)
	l := startLoad(t, "key:0", limit, 2, c.nodes[0].resp, c.nodes[1].resp, c.nodes[2].resp)
	eventually(t, 20*time.Second, "answers", func() bool { return l.answers() > 100 })

	place := c.others(leader)[0]
	place.kill()
	fresh := *place
	fresh.data = filepath.Join(t.TempDir(), "restored")
	fresh.args = append(fresh.args, "--data-dir", fresh.data)
	out, stderr, code := limitd(t, "snapshot", "restore", file, "--data-dir", fresh.data, "--node", fresh.id, "--config", c.file)
	if code != 0 {
		t.Fatalf("restore: %s", stderr)
	}
	line := fmt.Sprintf("limitd serve --config %s --node %s --data-dir %s\n", c.file, fresh.id, fresh.data)
	restored := printed(out)
	if inspected, _, _ := limitd(t, "snapshot", "inspect", file); !strings.Contains(out, line) || restored["records"] != printed(inspected)["records"] ||
		restored["cluster_id"] == printed(inspected)["cluster_id"] || restored["cluster_time"] != printed(inspected)["cluster_time"] {
		t.Errorf("restore printed\n%sof\n%s", out, inspected)
	}
	c.start(&fresh)
	c.awaitDecides(&fresh)
	for i := 1; i < 20; i++ { // the load calls key:0 here too
		checkCount(t, fresh.r, fmt.Sprint("key:", i), limit, saved[i])
	}
	for _, nd := range append(c.others(place), &fresh) {
		eventually(t, 20*time.Second, nd.id+" refuses a node of another cluster", func() bool {
			return strings.Contains(nd.out.String(), "of cluster "+restored["cluster_id"])
		})
	}
	before := l.answers()
	eventually(t, 20*time.Second, "answers of the old cluster", func() bool { return l.answers() > before+100 })
	fresh.kill()
	all := tally{}
	for address, one := range l.end() {
		if address != place.resp { // there, the new cluster answered too
			all.add(*one)
		} else {
			all.inDoubt += one.allowed + one.inDoubt + one.broken
			all.sure = nil
		}
	}
	all.add(saved[0])
	c.start(place)
	c.awaitDecides(place)
	checkCount(t, leader.r, "key:0", limit, all)
	c.awaitSameHash(c.nodes...)
}
