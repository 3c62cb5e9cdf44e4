package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"limitd/jepsen/history"
)

// bucket is a node that limits, by the clock of the test.
type bucket struct {
	mu  sync.Mutex
	tat map[string]time.Time
}

func (b *bucket) answer(node string, cmd []string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cmd[0] == "DEL" {
		delete(b.tat, cmd[1])
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
		b := &bucket{tat: map[string]time.Time{}}
		denied, all := map[string]float64{}, map[string]float64{}
		for _, e := range runFor(t, 10*time.Second, &fake{answer: b.answer}, Config{Seed: 1, Workers: tt.workers, Rate: tt.rate}) {
			if e.Type != history.OK || e.F != "take" {
				continue
			}
			class, _, _ := strings.Cut(e.Key, ":")
			for _, c := range []string{"all", class} {
				all[c]++
				if e.Reply.([]any)[0] == int64(1) {
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
