package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"limitd/jepsen/history"
)

// An answer takes no time here, so that waits are exact to the nanosecond: who waits as
// he was told is admitted, in full seconds and in milliseconds, and who waits a bit
// less is not.
func TestTheWaitIsTheOneThatWasTold(t *testing.T) {
	b := &bucket{tat: map[string]time.Time{}}
	const workers = 5 // of which two are patient
	events := runFor(t, 2*time.Minute, &fake{answer: func(node string, cmd []string) string {
		if slices.Contains([]string{"CL.THROTTLE", "PTTL"}, cmd[0]) && strings.HasPrefix(cmd[1], "own") {
			return b.answer(node, cmd)
		}
		return allow(node, cmd)
	}}, Config{Seed: 3, Workers: workers, Rate: 50})

	type denial struct {
		at, seconds int64
		cmd         []string
	}
	denied := map[string]denial{} // by key
	waits := map[string]int{}
	cmds := map[uint64][]string{}
	for _, e := range events {
		if !strings.HasPrefix(e.Key, "own") {
			continue
		}
		if e.Type == history.Invoke {
			cmds[e.Tag] = e.Cmd
			continue
		}
		if e.F != "take" {
			continue
		}
		limited := e.Reply.([]any)[0] == int64(1)
		d, again := denied[e.Key]
		delete(denied, e.Key)
		if !again {
			if limited {
				denied[e.Key] = denial{e.Time, e.Reply.([]any)[3].(int64), cmds[e.Tag]}
			}
			continue
		}
		if !slices.Equal(d.cmd, cmds[e.Tag]) {
			t.Fatalf("denied %q, asked again %q", d.cmd, cmds[e.Tag])
		}
		waited := e.Time - d.at
		switch {
		case limited && waited < d.seconds*1e9:
			waits["early"]++
		case limited:
			t.Fatalf("event %d: denied after %d ns, told %d s", e.Index, waited, d.seconds)
		case waited == d.seconds*1e9:
			waits["seconds"]++
		case waited < d.seconds*1e9:
			waits["milliseconds"]++
		default:
			t.Fatalf("event %d: waited %d ns, told %d s", e.Index, waited, d.seconds)
		}
	}
	for _, how := range []string{"seconds", "milliseconds", "early"} {
		if waits[how] < 10 {
			t.Errorf("%d waits of the kind %s in two minutes", waits[how], how)
		}
	}
}
