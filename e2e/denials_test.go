package e2e

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// TestFloodOfDenialsCostsNoDiskAndNoLeader denies at a follower as fast as it can be asked.
func TestFloodOfDenialsCostsNoDiskAndNoLeader(t *testing.T) {
	flood := 100_000
	if testing.Short() {
		flood = 20_000
	}
	c := startCluster(t, 3)
	leader := c.leader()
	follower := c.others(leader)[0]
	follower.r.mustThrottle("empty", 0, 1, 86400, 1)
	eventually(t, 10*time.Second, "the follower has applied the admission and denies by itself", func() bool {
		follower.r.mustThrottle("empty", 0, 1, 86400, 1)
		return number(t, follower.r.info(), "denied_local") > 0
	})

	before, began := measure(t, c, leader, follower), time.Now()
	for done := 0; done < flood; done += 500 {
		pipe := follower.r.Pipeline()
		for range 500 {
			pipe.Do(context.Background(), "CL.THROTTLE", "empty", 0, 1, 86400, 1)
		}
		cmds, err := pipe.Exec(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, cmd := range cmds {
			if v, err := cmd.(interface{ Result() (any, error) }).Result(); err != nil || v.([]any)[0].(int64) != 1 {
				t.Fatalf("not denied: %v, %v", v, err)
			}
		}
	}
	took := time.Since(began)
	after := measure(t, c, leader, follower)
	t.Logf("%d denials in %v: before %+v, after %+v", flood, took, before, after)

	// Ticks go on: one entry every 5 s, whatever happens.
	ticks := int64(took/(5*time.Second)) + 1
	if n := after.entries - before.entries; n > ticks {
		t.Errorf("the log grew by %d entries, and %d ticks can have been due", n, ticks)
	}
	// Each log write is synced; a tick is one on each node.
	if n := after.syncs - before.syncs; n > ticks*3 {
		t.Errorf("%d synced writes for %d denials, and %d can have been due to ticks", n, flood, ticks*3)
	}
	if n := after.written - before.written; n > (ticks+1)*3*256<<10 {
		t.Errorf("%d bytes went to disk for %d denials", n, flood)
	}
	if n := after.leaderDecided - before.leaderDecided; n != 0 {
		t.Errorf("the leader decided %d calls", n)
	}
	// The leader was asked for INFO twice in between, by this test.
	if n := after.leaderCommands - before.leaderCommands; n > 2 {
		t.Errorf("the leader's command counter moved by %d", n)
	}
	if n := after.deniedHere - before.deniedHere; n != int64(flood) {
		t.Errorf("the follower counted %d denials of its own, want %d", n, flood)
	}
}

// measured is what a flood of denials must not move, and what it must.
type measured struct {
	entries        int64 // newest committed log index
	syncs          int64 // synced log writes of all nodes
	written        int64 // bytes that all nodes caused to be written to storage
	leaderDecided  int64
	leaderCommands int64
	deniedHere     int64
}

func measure(t *testing.T, c *cluster, leader, follower *node) measured {
	t.Helper()
	l, f := leader.r.info(), follower.r.info()
	m := measured{
		entries:        number(t, l, "raft_commit_index"),
		leaderDecided:  number(t, l, "allowed") + number(t, l, "denied") + number(t, l, "denied_local"),
		leaderCommands: number(t, l, "total_commands_processed"),
		deniedHere:     number(t, f, "denied_local"),
	}
	for _, nd := range c.nodes {
		m.syncs += number(t, nd.r.info(), "raft_log_writes")
		m.written += storageBytes(t, nd.pid())
	}
	return m
}

func number(t *testing.T, info map[string]string, name string) int64 {
	t.Helper()
	v, err := strconv.ParseInt(info[name], 10, 64)
	if err != nil {
		t.Fatalf("INFO's %s is %q", name, info[name])
	}
	return v
}

// storageBytes is write_bytes of /proc/PID/io.
func storageBytes(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^write_bytes: (\d+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no write_bytes in %s", text)
	}
	v, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
