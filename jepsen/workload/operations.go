package workload

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"limitd/jepsen/history"
)

// Operation is one row of what clients do. Make returns the command for a key.
type Operation struct {
	F     string
	Share int // of 100
	Make  func(r *rand.Rand, k Key) []string
}

// Operations are what the workload does. A command that limitd learns is tested by a
// row here, and a rule for its reply in package check's model.
var Operations = []Operation{
	{"take", 74, func(r *rand.Rand, k Key) []string {
		weight := 1 + r.Int64N(3)
		if r.IntN(8) == 0 {
			weight = 1 + r.Int64N(k.MaxBurst+2) // up to what can never pass
		}
		return k.throttle(weight)
	}},
	{"peek", 12, func(_ *rand.Rand, k Key) []string { return k.throttle(0) }},
	{"refund", 7, func(r *rand.Rand, k Key) []string { return k.throttle(-1 - r.Int64N(2)) }},
	{"reset", 2, func(_ *rand.Rand, k Key) []string { return []string{"DEL", k.Name} }},
	{"exists", 2, func(_ *rand.Rand, k Key) []string { return []string{"EXISTS", k.Name} }},
	{"ttl", 3, func(_ *rand.Rand, k Key) []string { return []string{"PTTL", k.Name} }},
}

// Key is a key and the limit under which it is charged.
type Key struct {
	Name                    string
	MaxBurst, Count, Period int64
	Resets                  bool // DEL may hit it
}

func (k Key) throttle(quantity int64) []string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return []string{"CL.THROTTLE", k.Name, n(k.MaxBurst), n(k.Count), n(k.Period), n(quantity)}
}

// Classes of keys. Budgets hardly refill in the time of a run, so every charge that
// is lost or invented shows.
func hot(i int) Key    { return Key{"hot:" + strconv.Itoa(i), 19, 60, 1, true} }
func warm(i int) Key   { return Key{"warm:" + strconv.Itoa(i), 5, 12, 3, true} }
func budget(i int) Key { return Key{"budget:" + strconv.Itoa(i), 1999, 1, 86400, false} }
func cold(i int) Key   { return Key{"cold:" + strconv.Itoa(i), 2, 1, 60, true} }

const (
	hotKeys    = 2
	warmKeys   = 16
	budgetKeys = 3
)

// draw picks a key. cold counts the keys that were used once.
func draw(r *rand.Rand, worker int, next *int) Key {
	switch n := r.IntN(100); {
	case n < 25:
		return hot(r.IntN(hotKeys))
	case n < 70:
		return warm(r.IntN(warmKeys))
	case n < 85:
		return budget(r.IntN(budgetKeys))
	}
	if *next == 0 || r.IntN(3) == 0 { // a key comes back a few times
		*next++
	}
	return cold(worker*1_000_000 + *next)
}

// fixed are the keys that every run uses.
func fixed() (all []Key) {
	for i := range hotKeys {
		all = append(all, hot(i))
	}
	for i := range warmKeys {
		all = append(all, warm(i))
	}
	for i := range budgetKeys {
		all = append(all, budget(i))
	}
	return all
}

// certain are the codes of errors that say "certainly not charged".
var certain = map[string]bool{"ERR": true, "BUSY": true, "OOM": true, "CLUSTERDOWN": true, "TRYAGAIN": true, "LOADING": true}

// classify says what an error reply means for the operation.
func classify(text string) history.Type {
	code, _, _ := strings.Cut(text, " ")
	if certain[code] {
		return history.Fail
	}
	return history.Info
}
