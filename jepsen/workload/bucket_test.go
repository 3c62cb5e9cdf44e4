package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"limitd/algo"
	"limitd/jepsen/history"
)

// bucket is a node that limits, by the clock of the test.
type bucket struct {
	mu  sync.Mutex
	tat map[string]time.Time

	records map[string]limited1 // by key and identity
}

// limited1 is a record of a limit.
type limited1 struct {
	state  []byte
	expiry int64
}

// take decides on a limit as the nodes do, and returns what keeps it.
func (b *bucket) take(key, expr, cost string) (algo.Verdict, func()) {
	l, err := algo.Parse(expr)
	n, bad := strconv.ParseInt(cost, 10, 64)
	if err != nil || bad != nil {
		panic(fmt.Sprint(err, bad))
	}
	at := key + string(l.Ident())
	now, old := time.Now().UnixNano(), b.records[at]
	if old.expiry <= now {
		old.state = nil
	}
	v, e := l.Decide(old.state, now, 0, n, nil)
	return v, func() {
		switch e.Op {
		case algo.Replace:
			b.records[at] = limited1{e.State, e.Expiry}
		case algo.Splice:
			b.records[at] = limited1{append(slices.Clone(old.state[e.Drop:len(old.state)-e.Cut]), e.State...), e.Expiry}
		}
	}
}

// answerLimits answers the commands with limit expressions that charge.
func (b *bucket) answerLimits(cmd []string) string {
	pairs := pairsOf(cmd)
	costs := make([]string, len(pairs))
	for i := range costs {
		costs[i] = "1"
	}
	if i := slices.Index(cmd, "COSTS"); i > 0 {
		copy(costs, cmd[i+1:])
	}
	if i := slices.Index(cmd, "COST"); i > 0 {
		costs[0] = cmd[i+1]
	}
	allowed, waitMS := int64(1), int64(0)
	var keep []func()
	for i, p := range pairs {
		v, k := b.take(p.key, p.limit, costs[i])
		if !v.Allowed {
			allowed = 0
			waitMS = max(waitMS, (v.RetryAfter+1e6-1)/1e6)
		}
		keep = append(keep, k)
	}
	if allowed == 1 && !slices.Contains(cmd, "PEEK") {
		for _, k := range keep {
			k()
		}
	}
	return fmt.Sprintf("*7\r\n:%d\r\n:1\r\n:0\r\n:%d\r\n:0\r\n:0\r\n:0\r\n", allowed, waitMS)
}

func (b *bucket) answer(node string, cmd []string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cmd[0] == "DEL" {
		delete(b.tat, cmd[1])
	}
	if cmd[0] == "RL.TAKE" || cmd[0] == "RL.TAKEALL" {
		return b.answerLimits(cmd)
	}
	if cmd[0] != "PTTL" && cmd[0] != "CL.THROTTLE" {
		return allow(node, cmd)
	}
	now, tat := time.Now(), b.tat[cmd[1]]
	if tat.Before(now) {
		tat = now
	}
	if cmd[0] == "PTTL" {
		return fmt.Sprintf(":%d\r\n", (tat.Sub(now)+time.Millisecond-1)/time.Millisecond)
	}
	var n [4]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(cmd[2+i], 10, 64)
	}
	interval := time.Duration(n[2]) * time.Second / time.Duration(n[1])
	wait := tat.Add(interval * time.Duration(n[3]-n[0]-1)).Sub(now)
	if n[3] > 0 && wait > 0 {
		return fmt.Sprintf("*5\r\n:1\r\n:%d\r\n:0\r\n:%d\r\n:1\r\n", n[0]+1, (wait+time.Second-1)/time.Second)
	}
	b.tat[cmd[1]] = tat.Add(interval * time.Duration(n[3]))
	return allow(node, cmd)
}

// A run in which all is allowed, or all denied, shows nothing.
func TestAboutHalfOfTheTakesAreDenied(t *testing.T) {
	for _, tt := range []struct {
		workers int
		rate    float64
	}{{8, 200}, {12, 400}} {
		b := &bucket{tat: map[string]time.Time{}, records: map[string]limited1{}}
		denied, all := map[string]float64{}, map[string]float64{}
		for _, e := range runFor(t, 10*time.Second, &fake{answer: b.answer}, Config{Seed: 1, Workers: tt.workers, Rate: tt.rate}) {
			class, _, _ := strings.Cut(e.Key, ":")
			no := int64(1)
			switch {
			case e.Type != history.OK:
				continue
			case e.F == "take-limit":
				no = 0
			case e.F == "takeall":
				no, class = 0, "several"
			case e.F != "take":
				continue
			}
			for _, c := range []string{"all", class} {
				all[c]++
				if e.Reply.([]any)[0] == no {
					denied[c]++
				}
			}
		}
		for c := range all {
			percent := math.Round(100 * denied[c] / all[c])
			t.Logf("%d workers, %v/s: %v%% of %v takes of %s keys are denied", tt.workers, tt.rate, percent, all[c], c)
			least, most := 10.0, 90.0
			if c == "all" {
				least, most = 30, 70
			}
			if all[c] > 50 && (percent < least || percent > most) {
				t.Errorf("%d workers, %v/s: %v%% of %s are denied", tt.workers, tt.rate, percent, c)
			}
		}
	}
}
