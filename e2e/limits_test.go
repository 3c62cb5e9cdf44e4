package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Periods are long: nothing comes back, and no window ends, while a test runs.

// budget is a use of limits that people have: calls that many clients make at once, and
// how many of them may pass.
type budget struct {
	name  string
	calls int
	call  func(i int) string // the i-th command
	pass  int64              // how many may pass
	left  []left             // what remains of each limit once they have
}

// left is a limit and the units that a call charges it.
type left struct {
	key, limit string
	of, each   int64
}

var budgets = []budget{
	{"25 calls at once on a limit of 5", 25, func(int) string { return "RL.TAKE api:1 5/1h" }, 5, []left{{"api:1", "5/1h", 5, 1}}},
	{"two tiers", 60, func(int) string { return "RL.TAKEALL 2 tier:1 5/1h tier:1 40/1d" }, 5,
		[]left{{"tier:1", "5/1h", 5, 1}, {"tier:1", "40/1d", 40, 1}}},
	{"a budget for the day that may not be spent in an hour", 200, func(int) string {
		return "RL.TAKEALL 2 budget:1 fixed:5000/520w budget:1 log:50/1h"
	}, 50, []left{{"budget:1", "fixed:5000/520w", 5000, 1}, {"budget:1", "log:50/1h", 50, 1}}},
	{"a cooldown", 20, func(int) string { return "RL.TAKE cool:1 1/1h" }, 1, []left{{"cool:1", "1/1h", 1, 1}}},
	{"bytes", 20, func(int) string { return "RL.TAKE upload:1 sliding:500000000/52w COST 120000000" }, 4,
		[]left{{"upload:1", "sliding:500000000/52w", 500e6, 120e6}}},
	{"requests and tokens of a language model", 40, func(int) string {
		return "RL.TAKEALL 2 llm:1 60/1d llm:1 token:50000/365d COSTS 1 5000"
	}, 10, []left{{"llm:1", "60/1d", 60, 1}, {"llm:1", "token:50000/365d", 50000, 5000}}},
	{"a queue for a partner", 30, func(int) string { return "RL.TAKE partner:1 leaky:1/1h,queue=6" }, 7, []left{{"partner:1", "leaky:1/1h,queue=6", 7, 1}}},
}

// The sums are exact while many clients ask all nodes and the leader is killed, for
// limits of every algorithm, alone and together.
func TestBudgetsAreKeptWhileTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	tallies := make([]tally, len(budgets))
	var done sync.WaitGroup
	var mu sync.Mutex
	var made int64 // calls answered, of all budgets
	for i := range budgets {
		b, total := &budgets[i], &tallies[i]
		for j, nd := range c.nodes {
			for range 2 {
				conn := dial(t, nd.resp)
				done.Go(func() {
					for n := range (b.calls + 5) / 6 {
						one := oneCall(conn, b.call(n), 20*time.Second)
						mu.Lock()
						total.add(one)
						made++
						mu.Unlock()
						time.Sleep(time.Duration(j+1) * pace)
					}
				})
			}
		}
	}
	eventually(t, 20*time.Second, "calls before the kill", func() bool { mu.Lock(); defer mu.Unlock(); return made > 60 })
	leader.kill()
	done.Wait()
	asked := c.others(leader)[0]
	c.awaitDecides(asked)
	for i := range budgets {
		b, got := budgets[i], tallies[i]
		doubt := got.inDoubt + got.broken
		if got.allowed > b.pass || got.allowed+doubt < b.pass || len(got.strange) > 0 {
			t.Errorf("%s: %v, want %d to pass", b.name, got, b.pass)
		}
		for _, l := range b.left {
			used := l.of - remaining(asked.r, l.key, l.limit)
			if used < got.allowed*l.each || used > (got.allowed+doubt)*l.each || used%l.each != 0 {
				t.Errorf("%s: %d units of %s are used; %v", b.name, used, l.limit, got)
			}
		}
	}
}

// A one-time password is guarded by four limits at once. No limit is exceeded, and a
// call that one of them denies leaves the others untouched, to the unit.
func TestOneTimePasswordsChargeAllLimitsOrNone(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	const ids, ips, nets = 30, 6, 2
	limits := map[string]string{"id": "log:3/1h", "ip": "log:10/1h", "net": "sliding:25/52w", "all": "60/1d"}
	most := map[string]int64{"id": 3, "ip": 10, "net": 25, "all": 60}
	type charge struct{ sure, doubt int64 }
	charges := map[string]*charge{} // by key
	var mu sync.Mutex
	var done sync.WaitGroup
	denied := map[string]int{}
	for i, nd := range c.nodes {
		for j := range 3 {
			conn := dial(t, nd.resp)
			done.Go(func() {
				for n := range 40 {
					id := (n*7 + i*13 + j*5) % ids
					keys := []string{fmt.Sprintf("id:%d", id), fmt.Sprintf("ip:%d", id%ips), fmt.Sprintf("net:%d", id%nets), "all"}
					cmd := "RL.TAKEALL 4"
					for _, k := range keys {
						kind, _, _ := strings.Cut(k, ":")
						cmd += " " + k + " " + limits[kind]
					}
					one := oneCall(conn, cmd, 20*time.Second)
					mu.Lock()
					for _, k := range keys {
						if charges[k] == nil {
							charges[k] = &charge{}
						}
						charges[k].sure += one.allowed
						charges[k].doubt += one.inDoubt + one.broken
					}
					if one.denied > 0 {
						denied["some"]++
					}
					mu.Unlock()
				}
			})
		}
	}
	eventually(t, 20*time.Second, "denials before the kill", func() bool { mu.Lock(); defer mu.Unlock(); return denied["some"] > 20 })
	leader := c.leader()
	leader.kill()
	done.Wait()
	asked := c.others(leader)[0]
	c.awaitDecides(asked)
	for k, got := range charges {
		kind, _, _ := strings.Cut(k, ":")
		used := most[kind] - remaining(asked.r, k, limits[kind])
		if used > most[kind] || used < got.sure || used > got.sure+got.doubt {
			t.Errorf("%s: %d units are used, %+v were charged, at most %d may be", k, used, *got, most[kind])
		}
	}
	if got := charges["all"]; got.sure+got.doubt < 40 {
		t.Errorf("only %+v passed", *got)
	}
}

// oneCall makes a call, and again while it was certainly not charged, and says how it
// ended.
func oneCall(c client, command string, patience time.Duration) (got tally) {
	var args []any
	for _, w := range strings.Fields(command) {
		args = append(args, w)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		v, err := c.Do(context.Background(), args...).Slice()
		switch {
		case err == nil && len(v) > 0 && v[0] == int64(1):
			got.allowed++
		case err == nil:
			got.denied++
		case code(err) == "INDOUBT":
			got.inDoubt++
		case notCharged(err) && time.Since(began) < patience:
			continue
		case neverConnected(err):
			got.count("no connection", 1)
		case code(err) == "":
			got.broken++
		default:
			got.strange = append(got.strange, command+": "+err.Error())
		}
		return got
	}
}

// remaining is what RL.PEEK says is left.
func remaining(c client, key, limit string) int64 {
	c.t.Helper()
	var v []int64
	eventually(c.t, 20*time.Second, "an answer to RL.PEEK", func() bool {
		var err error
		v, err = c.Do(context.Background(), "RL.PEEK", key, limit).Int64Slice()
		return err == nil && len(v) == 7
	})
	return v[2]
}

// What a person would type.
func TestSeveralLimitsByHand(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	port := portOf(c.nodes[1].resp)
	words := strings.Fields("RL.TAKEALL 2 ip:1.2.3.4 log:2/10m global 100/1d")
	for i := range 3 {
		lines := strings.Split(redisCLI(t, port, words...), "\n")
		if want := map[bool][]string{true: {"1", "-1"}, false: {"0", "0"}}[i < 2]; !slices.Equal(lines[:2], want) {
			t.Errorf("call %d: allowed, denied_by: %q, want %q", i+1, lines[:2], want)
		}
	}
	if got := strings.Split(redisCLI(t, port, "RL.PEEK", "global", "100/1d"), "\n"); got[2] != "98" {
		t.Errorf("RL.PEEK global 100/1d: %q, want 98 left", got)
	}
	if got := python(t, portOf(c.nodes[2].resp), "RL.LIST", "ip:1.2.3.4"); !strings.Contains(got, "b'log', b'10m', 2") {
		t.Errorf("RL.LIST: %s", got)
	}
	if got := redisCLI(t, port, "RL.REFUND", "ip:1.2.3.4", "log:2/10m", "1"); !strings.HasPrefix(got, "1\n2\n1\n") {
		t.Errorf("RL.REFUND: %q", got)
	}
	if got := redisCLI(t, port, "RL.TAKE", "k", "10/1x"); !strings.Contains(got, `10/1x: unknown unit "x", use ms, s, m, h, d, w`) {
		t.Errorf("a bad limit: %q", got)
	}
}
