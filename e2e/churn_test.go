package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	churnFor  = flag.Duration("churn", 0, "how long TestChurn goes on `DURATION` (default 1m, with -short none)")
	churnSeed = flag.Uint64("seed", 0, "`SEED` of TestChurn's choices (default: a new one, which it prints)")
)

// TestChurn does everything that an operator does to a cluster, in random order,
// while nodes are killed, paused and stopped at random and clients of all nodes
// call many keys. At the end all members have applied the same, and each key has
// admitted what its limit allows and remembers what it admitted.
//
// Of the voters a majority is always up, but for moments: a node that is killed
// and started again at once, and a power cut of all.
func TestChurn(t *testing.T) {
	length, seed := *churnFor, *churnSeed
	if length == 0 && testing.Short() {
		t.Skip("NOT TESTED in the short form: `make churn` does")
	} else if length == 0 {
		length = time.Minute
	}
	if seed == 0 {
		seed = rand.Uint64N(1_000_000)
	}
	t.Logf("again with: go test -count=1 -v -run '^TestChurn$' ./e2e -churn=%v -seed=%d", length, seed)

	w := newChurn(t, seed)
	tr := startTraffic(t, 3, w.pick, w.nodes...)
	end := time.Now().Add(length)
	stop, trouble := make(chan struct{}), sync.WaitGroup{}
	trouble.Go(func() { w.makeTrouble(rand.New(rand.NewPCG(seed, 2)), stop) })
	endTrouble := sync.OnceFunc(func() { close(stop); trouble.Wait() })
	defer endTrouble() // before the test ends, however it does
	for time.Now().Before(end) || w.lacks(length) != "" && time.Now().Before(end.Add(time.Minute)) {
		w.step() // on a busy machine a little longer, until all has been done
	}
	endTrouble()

	members := w.members()
	for _, s := range members {
		w.awaitAnswer(s)
	}
	w.awaitSameView(members)
	tr.check(members[0].node)
	w.awaitSameHash(nodesOf(members)...)
	w.sameStates(members)
	w.report(length, tr)
}

// lacks is an operation that was done less than once in 90 s; empty: there is none,
// or the test is a short one.
func (w *churn) lacks(length time.Duration) string {
	for _, op := range operations {
		if length >= time.Minute && w.done[op.name] < max(1, int(length/(90*time.Second))) {
			return op.name
		}
	}
	return ""
}

// report prints what was done, and fails if that was too little to mean anything.
func (w *churn) report(length time.Duration, tr *traffic) {
	var did []string
	all := 0
	for _, op := range operations {
		did = append(did, fmt.Sprintf("%s %d (%v)", op.name, w.done[op.name], w.took[op.name].Round(100*time.Millisecond)))
		all += w.done[op.name]
	}
	if name := w.lacks(length); name != "" {
		w.t.Errorf("%s was done %d times in %v", name, w.done[name], length)
	}
	w.t.Logf("done, and the longest of each: %s", strings.Join(did, ", "))
	troubles := 0
	for _, n := range w.troubled {
		troubles += n
	}
	w.t.Logf("meanwhile: %v", w.troubled)
	for _, why := range slices.Sorted(maps.Keys(w.refusals)) {
		w.t.Logf("%d times asked again because: %s", w.refusals[why], why)
	}
	if all < int(length/(6*time.Second)) {
		w.t.Errorf("%d operations in %v: too few", all, length)
	}
	if troubles < int(length/(8*time.Second)) {
		w.t.Errorf("%d kills, pauses and stops in %v: too few", troubles, length)
	}
	if n := tr.reached(); n < int(length/time.Second) && machine.calm(tr.began) {
		w.t.Errorf("%d keys reached their limit in %v: an admission too many would not have shown", n, length)
	}
}

// pick chooses among keys whose limit is never reached, and keys of the second
// or of long ago whose limit is.
func (w *churn) pick(r *rand.Rand) (string, int64) {
	second := int(time.Since(w.began) / time.Second)
	switch n := r.IntN(100); {
	case n < 50:
		return fmt.Sprintf("wide:%d", r.IntN(8)), 1_000_000
	case n < 65:
		second = r.IntN(second + 1)
	}
	return fmt.Sprintf("tight:%d:%d", second, r.IntN(4)), 20
}
