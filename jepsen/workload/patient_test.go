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
	b := &bucket{tat: map[string]time.Time{}, records: map[string]limited1{}}
	const workers = 5 // of which two are patient
	events := runFor(t, 2*time.Minute, &fake{answer: func(node string, cmd []string) string {
		if slices.Contains([]string{"CL.THROTTLE", "PTTL"}, cmd[0]) && strings.HasPrefix(cmd[1], "own") || cmd[0] == "RL.TAKE" && strings.HasPrefix(cmd[1], "mine") {
			return b.answer(node, cmd)
		}
		return allow(node, cmd)
	}}, Config{Seed: 3, Workers: workers, Rate: 50})

	type denial struct {
		at, told int64 // ns
		cmd      []string
	}
	denied := map[string]denial{} // by key
	waits := map[string]int{}
	cmds := map[uint64][]string{}
	for _, e := range events {
		of := strings.HasPrefix(e.Key, "mine") // of an expression
		if !of && !strings.HasPrefix(e.Key, "own") {
			continue
		}
		if e.Type == history.Invoke {
			cmds[e.Tag] = e.Cmd
			continue
		}
		if e.F != "take" && e.F != "take-limit" {
			continue
		}
		reply := e.Reply.([]any)
		limited, told := reply[0] == int64(1), reply[3].(int64)*1e9
		if of {
			limited, told = reply[0] == int64(0), reply[3].(int64)*1e6
		}
		d, again := denied[e.Key]
		delete(denied, e.Key)
		if !again {
			if limited {
				denied[e.Key] = denial{e.Time, told, cmds[e.Tag]}
			}
			continue
		}
		if !slices.Equal(d.cmd, cmds[e.Tag]) {
			t.Fatalf("denied %q, asked again %q", d.cmd, cmds[e.Tag])
		}
		waited := e.Time - d.at
		switch {
		case limited && waited >= d.told:
			t.Fatalf("event %d: denied after %d ns, told %d", e.Index, waited, d.told)
		case waited > d.told:
			t.Fatalf("event %d: waited %d ns, told %d", e.Index, waited, d.told)
		case limited && of:
			waits["early of an expression"]++
		case limited:
			waits["early"]++
		case of && waited == d.told:
			waits["of an expression"]++
		case waited == d.told:
			waits["seconds"]++
		case !of:
			waits["milliseconds"]++
		}
	}
	for _, how := range []string{"seconds", "milliseconds", "early", "of an expression", "early of an expression"} {
		if waits[how] < 10 {
			t.Errorf("%d waits of the kind %s in two minutes", waits[how], how)
		}
	}
}
