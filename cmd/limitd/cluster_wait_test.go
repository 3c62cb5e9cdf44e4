package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// fakeCluster answers RL.CLUSTER for three nodes.
type fakeCluster struct {
	nodes  []object
	status map[string]object // by address
}

func (f *fakeCluster) ask(_ context.Context, addr, what string) ([]object, error) {
	if what == "NODES" {
		return f.nodes, nil
	}
	if s, ok := f.status[addr]; ok {
		return []object{s}, nil
	}
	return nil, errors.New(addr + ": connection refused")
}

func member(id, role, resp string) object {
	return object{{"id", id}, {"role", role}, {"resp", resp}}
}

func standing(ready, applied int64) object {
	return object{{"ready", ready}, {"applied_index", applied}}
}

func level() *fakeCluster {
	return &fakeCluster{
		nodes: []object{member("n1", "leader", "a1"), member("n2", "voter", "a2"), member("n3", "nonvoter", "a3"), member("n4", "none", "a4")},
		status: map[string]object{
			"a1": standing(1, 5000), "a2": standing(1, 4990), "a3": standing(1, 4000),
		},
	}
}

func TestWaitSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name  string
		ids   []string
		spoil func(*fakeCluster)
		want  string // empty: nothing is missing
	}{
		{"all is well", nil, func(*fakeCluster) {}, ""},
		{"those named have a vote", []string{"n1", "n2"}, func(*fakeCluster) {}, ""},
		{"a non-voter has none", []string{"n3"}, func(*fakeCluster) {}, "n3 has no vote yet"},
		{"a listed node is no member", []string{"n4"}, func(*fakeCluster) {}, "n4 is no member"},
		{"an unknown node is no member", []string{"n9"}, func(*fakeCluster) {}, "n9 is no member"},
		{"a member is down", nil, func(f *fakeCluster) { delete(f.status, "a2") }, "n2: a2: connection refused"},
		{"a member is not ready", nil, func(f *fakeCluster) { f.status["a3"] = standing(0, 5000) }, "n3: it is not ready"},
		{"a member is behind", nil, func(f *fakeCluster) { f.status["a3"] = standing(1, 3999) }, "n3 is 1001 entries behind"},
		{"nobody leads", nil, func(f *fakeCluster) { f.nodes[0] = member("n1", "voter", "a1") }, "no leader is known"},
		{"an address is unknown", nil, func(f *fakeCluster) { f.nodes[1] = member("n2", "voter", "") }, "n2: its address for clients is not known yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := level()
			c.spoil(f)
			got := strings.Join(clusterMisses(context.Background(), f.ask, c.ids), "; ")
			if got != c.want {
				t.Errorf("missing: %q, want %q", got, c.want)
			}
		})
	}
}

func TestWaitGivesUpWithTheReason(t *testing.T) {
	f := level()
	delete(f.status, "a2")
	err := waitForCluster(context.Background(), f.ask, nil, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "n2: a2: connection refused") {
		t.Errorf("%v", err)
	}
	if err := waitForCluster(context.Background(), level().ask, nil, time.Minute); err != nil {
		t.Errorf("%v", err)
	}
}
