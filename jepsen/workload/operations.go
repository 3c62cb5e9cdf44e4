package workload

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"limitd/jepsen/history"
)

// Operation is one row of what clients do.
type Operation struct {
	F     string
	Share int                                    // of 100
	On    func(k Key) bool                       // keys it may be asked of; nil: any
	Make  func(r *rand.Rand, k Key) []string     // the command
	Past  func(r *rand.Rand, p past) []string    // in place of Make: the command is about a call that had an ID
	ID    int                                    // how many of 100 have an ID
	Error func(code string) (history.Type, bool) // what an error reply means, where that is not the usual; nil: the usual
}

// Operations are what the workload does, about half of the time; [Limited] is the other half. A command that limitd learns is tested by a
// row here, and by a rule for its reply in package check. What a key is not for is a
// take.
var Operations = []Operation{
	{F: "take", Share: 72, Make: take},
	{F: "peek", Share: 11, Make: func(_ *rand.Rand, k Key) []string { return k.throttle(0) }},
	{F: "refund", Share: 7, On: func(k Key) bool { return k.class.refunds },
		Make: func(r *rand.Rand, k Key) []string { return k.throttle(-1 - r.Int64N(2)) }},
	{F: "reset", Share: 1, On: func(k Key) bool { return k.class.resets },
		Make: func(r *rand.Rand, k Key) []string { return append([]string{"DEL", k.Name}, k.another(r)...) }},
	{F: "exists", Share: 3, Make: func(r *rand.Rand, k Key) []string { return append([]string{"EXISTS", k.Name}, k.another(r)...) }},
	{F: "ttl", Share: 3, Make: func(r *rand.Rand, k Key) []string { return []string{[]string{"TTL", "PTTL"}[r.IntN(2)], k.Name} }},
	{F: "list", Share: 1, Make: func(_ *rand.Rand, k Key) []string { return []string{"RL.LIST", k.Name} }},
	{F: "type", Share: 1, Make: func(_ *rand.Rand, k Key) []string { return []string{"TYPE", k.Name} }},
	{F: "flush", Share: 1, On: func(k Key) bool { return k.NS != 0 }, Make: func(*rand.Rand, Key) []string { return []string{"FLUSHDB"} }},
}

// take is mostly a small charge, sometimes one of any size up to what can never pass.
func take(r *rand.Rand, k Key) []string {
	if r.IntN(8) == 0 {
		return k.throttle(1 + r.Int64N(min(k.class.maxBurst+2, k.class.heaviest)))
	}
	return k.throttle(1 + r.Int64N(3))
}

// operation finds a row.
func operation(f string) *Operation { return row(Operations, f) }

// limitOperation finds a row of those with limit expressions.
func limitOperation(f string) *Operation { return row(Limited, f) }

func row(table []Operation, f string) *Operation {
	return &table[slices.IndexFunc(table, func(o Operation) bool { return o.F == f })]
}

// drawOperation picks a row for a key; the first one, if it is not for what was picked.
func drawOperation(table []Operation, r *rand.Rand, k Key) *Operation {
	n := r.IntN(100)
	for i := range table {
		o := &table[i]
		if n < o.Share && (o.On == nil || o.On(k)) {
			return o
		}
		if n -= o.Share; n < 0 {
			break
		}
	}
	return &table[0]
}

// uncharged are the codes of errors that say "certainly not charged".
var uncharged = map[string]bool{"ERR": true, "BUSY": true, "OOM": true, "CLUSTERDOWN": true, "TRYAGAIN": true, "LOADING": true, "WRONGTYPE": true}

// classify says what an error reply means for the operation: INDOUBT, and whatever is
// not known, is an info.
func (o *Operation) classify(e replyError) history.Type {
	if o.Error != nil {
		if t, ok := o.Error(e.code()); ok {
			return t
		}
	}
	if uncharged[e.code()] {
		return history.Fail
	}
	return history.Info
}

// throttle is a CL.THROTTLE of the key under its limit.
func (k Key) throttle(quantity int64) []string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return []string{"CL.THROTTLE", k.Name, n(k.class.maxBurst), n(k.class.count), n(k.class.period), n(quantity)}
}

// another is sometimes a second key for a command that takes several.
func (k Key) another(r *rand.Rand) []string {
	if k.sibling == "" || r.IntN(2) == 0 {
		return nil
	}
	return []string{k.sibling}
}
