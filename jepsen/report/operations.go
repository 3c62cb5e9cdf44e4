package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"limitd/jepsen/history"
)

// outcome of an operation, as the plots tell them apart.
type outcome int

const (
	allowed  outcome = iota // charged, peeked at or given back: CL.THROTTLE said 0, an RL command 1
	denied                  // the opposite
	answered                // another command's answer
	failed                  // certainly not charged
	indoubt                 // perhaps charged; also what never ended
	outcomes
)

// outcomeNames are for people, outcomeClasses for the style sheet.
var (
	outcomeNames   = [outcomes]string{"ok, allowed", "ok, denied", "ok, other commands", "fail (not charged)", "info (in doubt)"}
	outcomeClasses = [outcomes]string{"allowed", "denied", "answered", "failed", "indoubt"}
)

// op is one operation of a client.
type op struct {
	begin, end history.Event
	ended      bool
}

func (o *op) took() int64 { return o.end.Time - o.begin.Time }

// join pairs invocations with their ends. A process has one operation open at a time.
func (r *run) join(events []history.Event) {
	open := map[int]int{}
	for _, e := range events {
		if e.Process == history.Nemesis {
			continue
		}
		if e.Type == history.Invoke {
			open[e.Process] = len(r.ops)
			r.byEvent[e.Index] = len(r.ops)
			r.ops = append(r.ops, op{begin: e, end: history.Event{Type: history.Info, Error: "it never ended"}})
			continue
		}
		if i, ok := open[e.Process]; ok {
			r.ops[i].end, r.ops[i].ended = e, true
			r.byEvent[e.Index] = i
			delete(open, e.Process)
		}
	}
}

func (o *op) outcome() outcome {
	switch o.end.Type {
	case history.Fail:
		return failed
	case history.OK:
	default:
		return indoubt
	}
	list, ok := o.end.Reply.([]any)
	if !ok || len(list) == 0 {
		return answered
	}
	yes, no := json.Number("0"), json.Number("1")
	if o.underLimits() {
		yes, no = no, yes
	} else if len(list) != 5 {
		return answered
	}
	switch list[0] {
	case yes:
		return allowed
	case no:
		return denied
	}
	return answered
}

// underLimits says that the command names limit expressions.
func (o *op) underLimits() bool {
	return len(o.begin.Cmd) > 0 && slices.Contains([]string{"RL.TAKE", "RL.PEEK", "RL.REFUND", "RL.TAKEALL"}, strings.ToUpper(o.begin.Cmd[0]))
}

// said is the reply or the error, in few words.
func (o *op) said() string {
	if o.end.Type != history.OK {
		return o.end.Error
	}
	list, ok := o.end.Reply.([]any)
	if !ok {
		return fmt.Sprint(o.end.Reply)
	}
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, " ")
}
