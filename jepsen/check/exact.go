package check

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
)

// exact is the state of a key's records with the time of the last decision: decisions do
// not go back in time, and each is the model's to the nanosecond.
type exact struct {
	states map[model.Record]model.State // never modified
	at     int64
	text   string // both, so that they can be compared
}

// after is the state that a change leaves at now.
func (s exact) after(change model.Change, now int64) exact {
	next := exact{states: s.states, at: now, text: fmt.Sprint(now)}
	if len(change.States) > 0 {
		next.states = maps.Clone(s.states)
		if next.states == nil {
			next.states = map[model.Record]model.State{}
		}
		maps.Copy(next.states, change.States)
	}
	for _, r := range slices.SortedFunc(maps.Keys(next.states), compareRecords) {
		next.text += fmt.Sprintf(" %s %s", r.Kind, r.Kind.Text(next.states[r], now))
	}
	return next
}

// view of the state.
func (s exact) view() model.View {
	all := kinds{}
	for r := range s.states {
		all.note(r)
	}
	return alone{func(r model.Record) model.State { return s.states[r] }, all}
}

// exactOperations are the decisions of rounds about a key from the beginning of the run,
// as operations: from the call's invocation until its return or, if it is in doubt,
// until the row of its round was written. nil: something unnamed changed the key.
func (e *evidence) exactOperations(k key) []porcupine.Operation {
	var all []porcupine.Operation
	for _, d := range e.agreed() {
		if d.call.NS != k.ns || d.call.Key != k.name {
			continue
		}
		if d.op == nil {
			if d.changes() {
				return nil
			}
			continue
		}
		d.only = len(e.byDecided[d.op.invoke.Tag]) == 1
		o := porcupine.Operation{Input: d, Call: d.op.from(), Return: d.op.to(), Metadata: d.op}
		if at, ok := e.clock.harness(d.row); ok && d.op.typ != history.OK {
			o.Return = max(at.hi, o.Call)
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return whole(all)
}

// whole is the longest beginning that ends where no operation is open, is not too long
// and has not too many at once.
func whole(all []porcupine.Operation) []porcupine.Operation {
	end := 0
	latest := int64(math.MinInt64)
	var open []int64
	for i, o := range all {
		if o.Call > latest {
			end = i
		}
		open = slices.DeleteFunc(open, func(t int64) bool { return t < o.Call })
		if open = append(open, o.Return); len(open) > exactParallel || i >= exactMost {
			return number(all[:end])
		}
		latest = max(latest, o.Return)
	}
	return number(all)
}

// number gives operations clients that have one open at a time.
func number(all []porcupine.Operation) []porcupine.Operation {
	var busy []int64
	for i := range all {
		c := slices.IndexFunc(busy, func(t int64) bool { return t < all[i].Call })
		if c < 0 {
			c = len(busy)
			busy = append(busy, 0)
		}
		busy[c] = all[i].Return
		all[i].ClientId = c
	}
	return all
}

var exactModel = porcupine.Model{
	Init: func() any { return exact{} },
	Step: func(state, input, _ any) (bool, any) {
		s, d := state.(exact), input.(*decision)
		if d.row.At < s.at {
			return false, s
		}
		want, err := model.Decide(d.call, d.row.At, 0, s.view())
		if err != nil || want.Differs(d.call) != "" {
			return false, s
		}
		if d.op.verb == list && d.op.typ == history.OK && d.only && !slices.Equal(inMS(want.List), d.op.listed) {
			return false, s
		}
		return true, s.after(want.Change, d.row.At)
	},
	Equal: func(a, b any) bool { return a.(exact).text == b.(exact).text },
	Hash: func(state any) uint64 {
		h := fnv.New64a()
		h.Write([]byte(state.(exact).text))
		return h.Sum64()
	},
	DescribeOperation: func(input, _ any) string {
		d := input.(*decision)
		return fmt.Sprintf("%s: at %d allowed %v, reset in %d ns", d.op, d.row.At, d.call.Allowed, d.call.Reset)
	},
	DescribeState: func(state any) string { return state.(exact).text },
}
