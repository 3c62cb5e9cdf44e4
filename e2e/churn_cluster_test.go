package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long one operation may take while nodes are killed.
const patience = 60 * time.Second

// slot is a place for a node: an id, ports and a directory. Nodes come and go in it.
type slot struct {
	*node
	base []string   // arguments without --join
	proc sync.Mutex // held by who starts, stops or looks at the process

	// Of churn.mu:
	role  string // as the test has made it: "" (no member), voter, nonvoter
	going bool   // it is being removed, so its process ends
	down  bool   // taken down on purpose
}

// churn is a cluster of changing members.
type churn struct {
	*cluster
	slots []*slot
	rng   *rand.Rand // of the operations
	began time.Time
	mu    sync.Mutex

	done     map[string]int           // operations
	took     map[string]time.Duration // the longest of each
	refusals map[string]int           // why something had to be asked for again
	troubled map[string]int           // of makeTrouble, until it ends
}

// newChurn starts three nodes of a file; three more slots are free.
func newChurn(t testing.TB, seed uint64) *churn {
	w := &churn{
		cluster: startCluster(t, 3), rng: rand.New(rand.NewPCG(seed, 1)), began: time.Now(),
		done: map[string]int{}, took: map[string]time.Duration{}, troubled: map[string]int{}, refusals: map[string]int{},
	}
	for _, nd := range w.nodes {
		w.slots = append(w.slots, &slot{node: nd, base: nd.args, role: "voter"})
	}
	for i := range 3 {
		nd := w.newcomer(fmt.Sprintf("n%d", 4+i), w.nodes[0])
		w.slots = append(w.slots, &slot{node: nd, base: nd.args[:len(nd.args)-2]})
	}
	return w
}

// with are the slots for which ok is true.
func (w *churn) with(ok func(*slot) bool) []*slot {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*slot
	for _, s := range w.slots {
		if ok(s) {
			out = append(out, s)
		}
	}
	return out
}

func isMember(s *slot) bool { return s.role != "" }
func isVoter(s *slot) bool  { return s.role == "voter" }
func isFree(s *slot) bool   { return s.role == "" }

func (w *churn) members() []*slot { return w.with(isMember) }
func (w *churn) voters() int      { return len(w.with(isVoter)) }

func nodesOf(slots []*slot) (out []*node) {
	for _, s := range slots {
		out = append(out, s.node)
	}
	return out
}

// set notes what a slot's node is now.
func (w *churn) set(s *slot, role string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.role, s.going = role, false
}

// takeDown reserves the right to take a node down; false if too few voters would stay up.
func (w *churn) takeDown(s *slot) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	voters, up := 0, 0
	for _, o := range w.slots {
		if o.role == "voter" {
			voters++
			if !o.down && o != s {
				up++
			}
		}
	}
	if s.down || s.role == "voter" && up < voters/2+1 {
		return false
	}
	s.down = true
	return true
}

func (w *churn) putUp(s *slot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.down = false
}

// any is a random member that should answer, other than s.
func (w *churn) any(s *slot) *slot {
	up := w.with(func(o *slot) bool { return o != s && o.role != "" && !o.down && !o.going })
	if len(up) == 0 {
		up = w.with(func(o *slot) bool { return o != s && o.role != "" })
	}
	return up[w.rng.IntN(len(up))]
}

// leading is the member that leads and knows that it does; nil if there is none now.
func (w *churn) leading() *slot {
	for _, s := range w.with(func(s *slot) bool { return s.role != "" && !s.down }) {
		if st := s.r.status(); st["role"] == "leader" && st["ready"] == int64(1) {
			return s
		}
	}
	return nil
}

// isForgotten says that no member that is up lists a node any more.
func (w *churn) isForgotten(s *slot) bool {
	up := w.with(func(o *slot) bool { return o != s && o.role != "" && !o.down })
	return !slices.ContainsFunc(up, func(o *slot) bool {
		members := o.r.members()
		return members == nil || members[s.id].raftID != ""
	})
}

// awaitAnswer waits until a member decides.
func (w *churn) awaitAnswer(s *slot) {
	w.t.Helper()
	w.until(s.id+" decides", nil, func() bool {
		_, err := s.r.throttle("limitd:ready", 0, 1, 1, 0)
		return err == nil
	})
}

// picture is how each member sees the cluster.
func (w *churn) picture() string {
	var b strings.Builder
	for _, s := range w.members() {
		fmt.Fprintf(&b, "%s, in the test's eyes a %s (going %v, down %v): %v\n  %v\n", s.id, s.role, s.going, s.down, s.r.members(), s.r.status())
	}
	return b.String()
}

// awaitSameView waits until each member sees the same members in the same roles, which are the test's.
func (w *churn) awaitSameView(members []*slot) {
	w.t.Helper()
	for _, s := range members {
		eventually(w.t, 20*time.Second, s.id+" sees the members that there are", func() bool {
			got := s.r.members()
			return len(got) == len(members) && !slices.ContainsFunc(members, func(o *slot) bool {
				return !got[o.id].is(o.role)
			})
		})
	}
}

// sameStates saves the state of each member at the same batch, and compares the bytes.
func (w *churn) sameStates(members []*slot) {
	w.t.Helper()
	type saved struct {
		Last uint64 `json:"last_batch"`
		Sum  string `json:"sha256"`
	}
	eventually(w.t, 30*time.Second, "the states of all members, saved at one batch", func() bool {
		var first saved
		for i, s := range members {
			path, stderr, code := limitd(w.t, "snapshot", "save", "--addr", s.resp)
			if code != 0 {
				w.t.Fatalf("snapshot save on %s: %s", s.id, stderr)
			}
			text, stderr, code := limitd(w.t, "snapshot", "inspect", "--json", strings.TrimSpace(path))
			var got saved
			if err := json.Unmarshal([]byte(text), &got); code != 0 || err != nil || got.Sum == "" {
				w.t.Fatalf("snapshot inspect of %s: %v\n%s%s", s.id, err, text, stderr)
			}
			if i == 0 {
				first = got
			}
			if got.Last != first.Last {
				return false // a tick came between
			}
			if got.Sum != first.Sum {
				w.t.Fatalf("%s and %s differ in their states at batch %d", members[0].id, s.id, got.Last)
			}
		}
		return true
	})
}
