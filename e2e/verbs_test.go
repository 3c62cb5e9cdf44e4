package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestThrottleVerbAnswersByItsExitCode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	at := c.nodes[0].resp
	for _, tc := range []struct {
		name string
		args []string
		code int
		out  string // in what is printed, on either stream
	}{
		{"allowed", []string{"k", "1", "1", "3600"}, 0, "allowed: 1 of 2 left"},
		{"two at once", []string{"k2", "1", "1", "3600", "2"}, 0, "allowed: 0 of 2 left"},
		{"denied", []string{"k2", "1", "1", "3600"}, 1, "denied: 0 of 2 left, retry in 3"},
		{"never", []string{"k2", "1", "1", "3600", "3"}, 1, "can never pass"},
		{"peek", []string{"k2", "1", "1", "3600", "0"}, 0, "0 of 2 left"},
		{"refund", []string{"--", "k2", "1", "1", "3600", "-1"}, 0, "1 of 2 left"},
		{"JSON", []string{"--json", "k2", "1", "1", "3600", "0"}, 0, `"remaining": 1`},
		{"no integer", []string{"k", "many", "1", "3600"}, 2, "many"},
		{"zero rate", []string{"k", "1", "0", "3600"}, 2, "Zero rates are not supported"},
		{"too few arguments", []string{"k", "1", "1"}, 2, "accepts between 4 and 5 arg"},
		{"unknown flag", []string{"--adr", "x", "k", "1", "1", "60"}, 2, "unknown flag: --adr"},
	} {
		stdout, stderr, code := limitd(t, append([]string{"throttle", "--addr", at}, tc.args...)...)
		if code != tc.code || !strings.Contains(stdout+stderr, tc.out) {
			t.Errorf("%s: code %d, want %d with %q\n%s%s", tc.name, code, tc.code, tc.out, stdout, stderr)
		}
	}
	if _, stderr, code := limitd(t, "throttle", "--addr", addr(reservePorts(t, 1)[0]), "k", "1", "1", "60"); code != 2 || !strings.Contains(stderr, "connection refused") {
		t.Errorf("no node: code %d, %s", code, stderr)
	}
}

func TestTakeVerbAnswersByItsExitCode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	at := c.nodes[0].resp
	for _, tc := range []struct {
		name string
		args []string
		code int
		out  string // in what is printed, on either stream
	}{
		{"allowed", []string{"k", "log:2/1h"}, 0, "allowed: 1 of 2 left"},
		{"peek", []string{"k", "log:2/1h", "--peek", "--cost", "2"}, 1, "denied: 1 of 2 left, retry in 3"},
		{"denied", []string{"k", "log:2/1h", "--cost", "2"}, 1, "denied: 1 of 2 left"},
		{"never", []string{"k", "log:2/1h", "--cost", "3"}, 1, "can never pass"},
		{"an ID", []string{"id", "fixed:9/1w", "--id", "x"}, 0, "allowed: 8 of 9 left"},
		{"the same ID", []string{"id", "fixed:9/1w", "--id", "x"}, 0, "allowed: 8 of 9 left"},
		{"the ID of another call", []string{"id", "fixed:9/1w", "--id", "x", "--cost", "2"}, 2, "ID was used for another call"},
		{"a queue", []string{"q", "leaky:1/1h,queue=3"}, 0, "allowed: 3 of 4 left"},
		{"its second", []string{"q", "leaky:1/1h,queue=3"}, 0, "wait 3599"},
		{"JSON", []string{"--json", "k", "log:2/1h", "--peek"}, 0, `"remaining": 1`},
		{"a bad limit", []string{"k", "2/1x"}, 2, `2/1x: unknown unit "x", use ms, s, m, h, d, w (character 4)`},
		{"a bad cost", []string{"k", "2/1h", "--cost", "-1"}, 2, "COST must be 0 or more"},
		{"no limit", []string{"k"}, 2, "accepts 2 arg"},
	} {
		stdout, stderr, code := limitd(t, append([]string{"take", "--addr", at}, tc.args...)...)
		if code != tc.code || !strings.Contains(stdout+stderr, tc.out) {
			t.Errorf("%s: code %d, want %d with %q\n%s%s", tc.name, code, tc.code, tc.out, stdout, stderr)
		}
	}
}

// nodeRow is one element of `cluster nodes --json`.
type nodeRow struct {
	ID        string
	RaftID    string `json:"raft_id"`
	RESP      string
	Peer      string
	Role      string
	ContactMS *int64 `json:"contact_ms"`
	Applied   int64
	Version   string
}

func TestClusterVerbs(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	other := c.others(leader)[0]

	var nodes []nodeRow
	eventually(t, 10*time.Second, "each node has heard how far the others are", func() bool {
		stdout, stderr, code := limitd(t, "cluster", "nodes", "--json", "--addr", other.resp)
		nodes = nil
		if err := json.Unmarshal([]byte(stdout), &nodes); err != nil || code != 0 || len(nodes) != 3 {
			t.Fatalf("cluster nodes --json: code %d, %v\n%s%s", code, err, stdout, stderr)
		}
		return !slices.ContainsFunc(nodes, func(n nodeRow) bool { return n.Applied < 1 })
	})
	for i, n := range nodes {
		role := "voter"
		if n.ID == leader.id {
			role = "leader"
		}
		if n.ID != c.nodes[i].id || n.RESP != c.nodes[i].resp || n.Role != role || !strings.HasPrefix(n.RaftID, n.ID+"-") ||
			n.Peer == "" || n.ContactMS == nil || *n.ContactMS < 0 || n.Version == "" {
			t.Errorf("cluster nodes --json has %+v, want role %s and every field", n, role)
		}
	}

	if stdout, _, code := limitd(t, "cluster", "nodes", "--addr", other.resp); code != 0 || !strings.HasPrefix(stdout, "id ") || strings.Count(stdout, "\n") != 4 {
		t.Errorf("cluster nodes: code %d\n%s", code, stdout)
	}
	if stdout, _, code := limitd(t, "cluster", "status", "--addr", other.resp); code != 0 || !strings.Contains(stdout, leader.id) {
		t.Errorf("cluster status: code %d\n%s", code, stdout)
	}
	var status map[string]any
	stdout, _, code := limitd(t, "cluster", "status", "--json", "--addr", leader.resp)
	if err := json.Unmarshal([]byte(stdout), &status); err != nil || code != 0 || status["role"] != "leader" || status["id"] != leader.id {
		t.Errorf("cluster status --json: code %d, %v\n%s", code, err, stdout)
	}

	if _, stderr, code := limitd(t, "cluster", "transfer", "nobody", "--addr", leader.resp); code != 2 || !strings.Contains(stderr, "nobody") {
		t.Errorf("transfer to a stranger: code %d, %s", code, stderr)
	}
	if stdout, stderr, code := limitd(t, "cluster", "transfer", other.id, "--addr", other.resp); code != 0 {
		t.Errorf("transfer: code %d, %s%s", code, stdout, stderr)
	}
	if now := c.leader(); now != other {
		t.Errorf("after the transfer %s leads, not %s", now.id, other.id)
	}
}

func TestSavedSnapshotsOfTwoNodesAreTheSameBytes(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for _, key := range []string{"a", "b", "c\x00\xff"} {
		c.nodes[0].r.mustThrottle(key, 10, 1, 3600, 1)
	}
	c.awaitSameHash(c.nodes...)
	type fields struct {
		LastBatch int64 `json:"last_batch"`
		Records   int64
		SHA256    string
	}
	sums := map[int64]string{}
	for _, nd := range c.nodes {
		path, stderr, code := limitd(t, "snapshot", "save", "--addr", nd.resp)
		path = strings.TrimSpace(path)
		if code != 0 || !strings.HasPrefix(path, nd.data) {
			t.Fatalf("snapshot save: code %d, path %q, %s", code, path, stderr)
		}
		stdout, stderr, code := limitd(t, "snapshot", "inspect", "--json", path)
		var got fields
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || got.Records != 3 {
			t.Fatalf("snapshot inspect: code %d, %v, %s%s", code, err, stdout, stderr)
		}
		if sum, ok := sums[got.LastBatch]; ok && sum != got.SHA256 {
			t.Errorf("%s saved other bytes at the same batch", nd.id)
		}
		sums[got.LastBatch] = got.SHA256

		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, damage := range [][]byte{whole[:len(whole)/2], flipped(whole, len(whole)/2), {}} {
			bad := filepath.Join(t.TempDir(), "damaged")
			if err := os.WriteFile(bad, damage, 0o600); err != nil {
				t.Fatal(err)
			}
			if stdout, stderr, code := limitd(t, "snapshot", "inspect", bad); code != 2 || !strings.Contains(stderr, bad) {
				t.Errorf("inspect of a damaged file: code %d\n%s%s", code, stdout, stderr)
			}
		}
	}
}

func TestConfigCheckNamesKeyAndLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(file, []byte("[raft]\nlease = \"9s\"\n[limits]\nmax_key = 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := limitd(t, "config", "check", file)
	if code != 2 || !strings.Contains(stderr, file+":2: raft.lease: ") || !strings.Contains(stderr, file+":4: limits.max_key: ") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	example, err := filepath.Abs("../cluster.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := limitd(t, "config", "check", example); code != 0 || !strings.Contains(stdout, "ok, 3 nodes") {
		t.Errorf("the example: code %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := limitd(t, "config", "check", file+".missing"); code != 2 || !strings.Contains(stderr, "no such file") {
		t.Errorf("no file: code %d, %s", code, stderr)
	}
}

func TestEveryVerbHasHelpWithAnExample(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"serve", "local", "cluster status", "cluster nodes", "cluster wait", "cluster join", "cluster promote", "cluster demote", "cluster remove", "cluster leave", "cluster transfer", "take", "throttle", "explain", "simulate", "snapshot save", "snapshot inspect", "config check", "version"} {
		stdout, _, code := limitd(t, append(strings.Fields(verb), "--help")...)
		if code != 0 || !strings.Contains(stdout, "Examples:\n  limitd "+verb) {
			t.Errorf("limitd %s --help: code %d\n%s", verb, code, stdout)
		}
	}
	if stdout, _, code := limitd(t, "completion", "bash"); code != 0 || !strings.Contains(stdout, "limitd") {
		t.Errorf("completion: code %d", code)
	}
	if stdout, _, code := limitd(t, "version"); code != 0 || !strings.HasPrefix(stdout, "limitd ") {
		t.Errorf("version: code %d, %s", code, stdout)
	}
	for _, verb := range []string{"serv", "cluster node", "snapshot load", "config test"} {
		if _, stderr, code := limitd(t, strings.Fields(verb)...); code != 2 || !strings.Contains(stderr, "unknown command") {
			t.Errorf("limitd %s: code %d, %s", verb, code, stderr)
		}
	}
}

// flipped is b with one bit of byte i changed.
func flipped(b []byte, i int) []byte {
	out := append([]byte(nil), b...)
	out[i] ^= 0x10
	return out
}
