package e2e

import (
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// traffic is clients that call many keys through many nodes, each with a
// connection of its own and a moment between two calls, and a tally for each key.
type traffic struct {
	t     testing.TB
	began time.Time
	end   func() // stops the clients

	mu       sync.Mutex
	limits   map[string]int64
	tallies  map[string]*tally // by key
	all      tally
	admitted time.Time     // the newest admission
	gap      time.Duration // the longest time without one
}

// pace is the moment between two calls of a client: the nodes shall have
// something to do, and time for what the test is about.
const pace = 2 * time.Millisecond

// pick chooses the next key to call, and its limit.
type pick func(*rand.Rand) (key string, limit int64)

// twoKeys is a key whose limit is reached soon, so that an admission too many
// shows as one, and one whose limit never is, so that each admission that is
// forgotten shows in what is left.
func twoKeys(r *rand.Rand) (string, int64) {
	if r.IntN(2) == 0 {
		return "tight", 40
	}
	return "wide", 1_000_000
}

// startTraffic starts perNode clients for each node, and returns when calls are
// answered. Not all nodes have to run.
func startTraffic(t testing.TB, perNode int, next pick, nodes ...*node) *traffic {
	t.Helper()
	tr := &traffic{t: t, began: time.Now(), limits: map[string]int64{}, tallies: map[string]*tally{}, admitted: time.Now()}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	tr.end = sync.OnceFunc(func() {
		close(stop)
		clients.Wait()
	})
	t.Cleanup(tr.end)
	for i, nd := range nodes {
		for j := range perNode {
			c, rng := dial(t, nd.resp), rand.New(rand.NewPCG(uint64(i), uint64(j)))
			clients.Go(func() { tr.client(c, next, rng, stop) })
		}
	}
	eventually(t, 20*time.Second, "a limit that is reached, before anything happens", func() bool { return tr.sum().denied > 0 })
	return tr
}

// client calls until it is told to stop.
func (tr *traffic) client(c client, next pick, rng *rand.Rand, stop <-chan struct{}) {
	for {
		key, limit := next(rng)
		var one tally
		one.call(c, key, limit)
		tr.note(key, limit, one)
		wait := pace
		if one.sure["no connection"] > 0 {
			wait *= 10 // nobody listens there
		}
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
	}
}

func (tr *traffic) note(key string, limit int64, one tally) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.tallies[key] == nil {
		tr.tallies[key], tr.limits[key] = &tally{}, limit
	}
	tr.tallies[key].add(one)
	tr.all.add(one)
	if one.allowed > 0 {
		now := time.Now()
		tr.gap = max(tr.gap, now.Sub(tr.admitted))
		tr.admitted = now
	}
}

// sum is how all calls ended so far.
func (tr *traffic) sum() tally {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	all := tr.all
	all.sure = maps.Clone(all.sure)
	return all
}

// flows waits until some more calls are admitted.
func (tr *traffic) flows(when string) {
	tr.t.Helper()
	before := tr.sum().allowed
	eventually(tr.t, 20*time.Second, "admissions "+when, func() bool { return tr.sum().allowed > before+30 })
}

// check ends the traffic and does the sum for each key at the node asked.
func (tr *traffic) check(asked *node) {
	tr.t.Helper()
	tr.end()
	all := tr.sum()
	tr.gap = max(tr.gap, time.Since(tr.admitted))
	tr.t.Logf("%d keys: %v; longest time without an admission %v", len(tr.tallies), all, tr.gap.Round(time.Millisecond))
	if len(all.strange) > 0 {
		tr.t.Errorf("calls were answered otherwise: %q", all.strange[:min(len(all.strange), 5)])
	}
	for key, one := range tr.tallies {
		checkCount(tr.t, asked.r, key, tr.limits[key], *one)
	}
}

// reached says how many keys have used up their limit, as far as answers tell.
func (tr *traffic) reached() (keys int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for key, one := range tr.tallies {
		if one.allowed+one.inDoubt+one.broken >= tr.limits[key] {
			keys++
		}
	}
	return keys
}
