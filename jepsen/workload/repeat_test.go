package workload

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"limitd/jepsen/history"
)

// A call that has an ID and no answer is asked again, the same under the same ID, at another
// node, and not for ever. What is answered is not asked again, and what has no ID never is.
func TestWhatHasAnIDAndNoAnswerIsRepeatedElsewhere(t *testing.T) {
	for reply, want := range map[string]bool{
		"-INDOUBT perhaps\r\n": true, "-TRYAGAIN later\r\n": true, "-CLUSTERDOWN no leader\r\n": true, "": true, "-ERR ID was used\r\n": false, "-BUSY full\r\n": false,
	} {
		var n atomic.Int64
		f := &fake{answer: func(node string, cmd []string) string {
			if n.Add(1)%10 == 0 {
				return reply
			}
			return allow(node, cmd)
		}}
		asked := map[string][]history.Event{} // by command, with an ID
		for _, e := range runFor(t, 20*time.Second, f, Config{Seed: 5, Workers: 8, Rate: 400}) {
			if e.Type != history.Invoke {
				continue
			}
			if e.F == repeated.F && !slices.Contains(e.Cmd, "ID") {
				t.Fatalf("%q is repeated", e.Cmd)
			}
			if e.F == repeated.F || slices.Contains(e.Cmd, "ID") {
				k := e.Cmd[len(e.Cmd)-1] + " " + e.Cmd[0]
				asked[k] = append(asked[k], e)
			}
		}
		again := 0
		for k, all := range asked {
			for i, e := range all {
				if e.F != repeated.F {
					continue
				}
				again++
				if i == 0 || all[i-1].Node == e.Node && all[i-1].F != "again" {
					t.Errorf("%q: %s is repeated at %s", reply, k, e.Node)
				}
			}
		}
		if (again > 0) != want {
			t.Errorf("%q: %d calls were repeated", reply, again)
		}
	}
	if repeats > 3 {
		t.Errorf("%d times", repeats)
	}
}
