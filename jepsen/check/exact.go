package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
)

// exact is a key's state with the time of its last decision: decisions do not go
// back in time, and each is the model's to the nanosecond.
type exact struct {
	tat int64 // 0: none
	at  int64
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
		var before model.State
		if s.tat != 0 {
			before = model.At(s.tat)
		}
		now := d.row.At
		want, after := answer(func(key) model.State { return before }, d.call, now)
		if want.differs(d.call) != "" {
			return false, s
		}
		next := exact{s.tat, now}
		for _, x := range after {
			next.tat = 0
			if debt := x.Debt(now); debt > 0 {
				next.tat = now + debt
			}
		}
		return true, next
	},
	Hash: func(state any) uint64 {
		s := state.(exact)
		return uint64(s.tat)*0x9e3779b97f4a7c15 ^ uint64(s.at)
	},
	DescribeOperation: func(input, _ any) string {
		d := input.(*decision)
		return fmt.Sprintf("%s: at %d allowed %v, reset in %d ns", d.op, d.row.At, d.call.Allowed, d.call.Reset)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("tat %d", state.(exact).tat) },
}
