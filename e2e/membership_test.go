package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// newcomer is a node that no configuration file lists: what it needs to know are
// flags, and the address of a member. It is not started.
func (c *cluster) newcomer(id string, through *node, flags ...string) *node {
	c.t.Helper()
	ports := reservePorts(c.t, 2)
	nd := &node{id: id, resp: addr(ports[0]), peer: addr(ports[1]), r: dial(c.t, addr(ports[0]))}
	nd.data = filepath.Join(filepath.Dir(c.nodes[0].data), id)
	nd.args = append([]string{"serve", "--node", id, "--listen", nd.resp, "--peer-listen", nd.peer, "--data-dir", nd.data, "--join", through.resp}, flags...)
	c.nodes = append(c.nodes, nd)
	return nd
}

// member is one row of RL.CLUSTER NODES.
type member struct{ id, raftID, role string }

// members are the nodes as this one sees them, without those that are only listed in a file.
func (c client) members() map[string]member {
	rows, err := c.Do(context.Background(), "RL.CLUSTER", "NODES").Slice()
	if err != nil {
		return nil
	}
	out := map[string]member{}
	for _, row := range rows {
		fields := named(row)
		m := member{fields["id"].(string), fields["raft_id"].(string), fields["role"].(string)}
		if m.raftID != "" {
			out[m.id] = m
		}
	}
	return out
}

// is says whether it is a member, and with a vote if role is voter.
func (m member) is(role string) bool {
	return m.raftID != "" && (m.role != "nonvoter") == (role == "voter")
}

// status is RL.CLUSTER STATUS; empty if the node does not answer.
func (c client) status() map[any]any {
	flat, _ := c.Do(context.Background(), "RL.CLUSTER", "STATUS").Result()
	return named(flat)
}

// named is a flat array of names and values as a map.
func named(reply any) map[any]any {
	fields := map[any]any{}
	flat, _ := reply.([]any)
	for i := 0; i+1 < len(flat); i += 2 {
		fields[flat[i]] = flat[i+1]
	}
	return fields
}

// isVoter says whether the node asked sees a member with this id as a voter.
func (c client) isVoter(id string) bool { return c.members()[id].is("voter") }

// awaitVoters waits until each of the nodes sees just these as voters.
func (c *cluster) awaitVoters(d time.Duration, nodes ...*node) {
	c.t.Helper()
	for _, nd := range nodes {
		if nd.running() {
			c.awaitVotersOf(d, nd, nodes...)
		}
	}
}

// awaitVotersOf waits until the node asked sees just these as voters.
func (c *cluster) awaitVotersOf(d time.Duration, asked *node, voters ...*node) {
	c.t.Helper()
	var want []string
	for _, nd := range voters {
		want = append(want, nd.id)
	}
	slices.Sort(want)
	eventually(c.t, d, fmt.Sprintf("%s sees the voters %v", asked.id, want), func() bool {
		var got []string
		for id, m := range asked.r.members() {
			if m.role != "nonvoter" {
				got = append(got, id)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// verb runs `limitd cluster ARGS` at the node asked.
func (c *cluster) verb(asked *node, args ...string) (stderr string, code int) {
	c.t.Helper()
	_, stderr, code = limitd(c.t, append(append([]string{"cluster"}, args...), "--addr", asked.resp)...)
	return stderr, code
}

// change runs `limitd cluster ARGS` at the node asked, which must do it.
func (c *cluster) change(asked *node, args ...string) {
	c.t.Helper()
	began := time.Now()
	if stderr, code := c.verb(asked, args...); code != 0 {
		c.t.Fatalf("limitd cluster %s at %s: code %d after %v: %s", strings.Join(args, " "), asked.id, code, time.Since(began), stderr)
	}
}

// refusesChange runs `limitd cluster ARGS` at the node asked, which must refuse it and say each of these words.
func (c *cluster) refusesChange(asked *node, words []string, args ...string) {
	c.t.Helper()
	stderr, code := c.verb(asked, args...)
	if code != 2 {
		c.t.Fatalf("limitd cluster %s at %s: code %d, want 2: %s", strings.Join(args, " "), asked.id, code, stderr)
	}
	for _, w := range words {
		if !strings.Contains(stderr, w) {
			c.t.Errorf("limitd cluster %s at %s does not say %q: %s", strings.Join(args, " "), asked.id, w, stderr)
		}
	}
}

// says waits until the node has printed the words.
func (c *cluster) says(nd *node, words string) {
	c.t.Helper()
	eventually(c.t, 20*time.Second, fmt.Sprintf("%s says %q", nd.id, words), func() bool { return strings.Contains(nd.out.String(), words) })
}

// ends waits until the node has ended by itself with this code, saying each of these words in its last line.
func (c *cluster) ends(nd *node, code int, words ...string) {
	c.t.Helper()
	if got := nd.wait(20 * time.Second); got != code {
		c.t.Errorf("%s ended with code %d, want %d:\n%s", nd.id, got, code, tail(nd.out.String(), 10))
	}
	last := tail(nd.out.String(), 1)
	for _, w := range words {
		if !strings.Contains(last, w) {
			c.t.Errorf("%s does not say %q in its last line:\n%s", nd.id, w, tail(nd.out.String(), 5))
		}
	}
}
