package check

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"limitd/jepsen/history"
	"limitd/trace"
)

// everywhere changes the rows of an entry on all nodes.
func (w *world) everywhere(index uint64, change func(*trace.Row)) {
	for _, n := range w.nodes {
		for i := range n.rows {
			if r := &n.rows[i]; r.Kind == trace.Applied && r.Index == index {
				effects := slices.Clone(r.Effects)
				r.Effects = effects
				change(r)
			}
		}
	}
}

// find is the first row from the n-th on that satisfies ok.
func (w *world) find(t *testing.T, from int, ok func(*trace.Row) bool) *trace.Row {
	t.Helper()
	for _, n := range w.nodes {
		for i := from; i < len(n.rows); i++ {
			if ok(&n.rows[i]) {
				return &n.rows[i]
			}
		}
	}
	t.Fatal("this run has no such row")
	return nil
}

// answered is the first completion from the n-th event on that satisfies ok.
func (w *world) answered(t *testing.T, from int, ok func(*history.Event) bool) *history.Event {
	t.Helper()
	for i := from; i < len(w.events); i++ {
		if e := &w.events[i]; e.Type != history.Invoke && ok(e) {
			return e
		}
	}
	t.Fatal("this run has no such event")
	return nil
}

// charged says that the call of the tag is in an entry that took effect, as an admission.
func (w *world) charged(tag uint64) bool {
	digests := map[string]bool{}
	for _, x := range w.log {
		digests[x.row.Digest] = x.row.Outcome == "applied"
	}
	for _, n := range w.nodes {
		for _, r := range n.rows {
			for _, c := range r.Calls {
				if r.Kind == trace.Round && c.Tag == tag && c.Allowed && c.Cost > 0 && digests[r.Digest] {
					return true
				}
			}
		}
	}
	return false
}

func written(r *trace.Row) bool {
	return r.Kind == trace.Applied && r.Outcome == "applied" && len(r.Effects) == 1 && r.Effects[0].Op == "replace"
}

func charge(e *history.Event) bool {
	reply, _ := e.Reply.([]any)
	return e.Type == history.OK && e.F == "take" && reply[0] == int64(0)
}

// defects: a good run in which one thing is wrong, or that a limiter with one bug made.
// The check must report it, and no other one but those that cannot but see it too.
var defects = []struct {
	name, check, too string
	bug              string
	seed             uint64 // the first to try; 0: 1
	spoil            func(*testing.T, *world)
}{
	{name: "a node panics", check: "logs", spoil: func(_ *testing.T, w *world) {
		w.prints = map[string]string{"n2": "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n"}
	}},
	{name: "two goroutines race", check: "logs", spoil: func(_ *testing.T, w *world) { w.prints = map[string]string{"n3": "WARNING: DATA RACE\n"} }},

	{name: "a node applies something else", check: "replicas", too: "witness, local-denials", spoil: func(t *testing.T, w *world) {
		r := w.find(t, 300, written)
		r.Effects = slices.Clone(r.Effects)
		r.Effects[0].Expiry++
	}},
	{name: "a node has a time of its own", check: "replicas", too: "monotone", spoil: func(t *testing.T, w *world) {
		for i := range w.nodes[1].rows {
			if r := &w.nodes[1].rows[i]; r.Kind == trace.Applied {
				r.T++
			}
		}
	}},
	{name: "a snapshot has forgotten the last batch", check: "replicas", spoil: func(t *testing.T, w *world) {
		w.find(t, 0, func(r *trace.Row) bool { return r.Kind == trace.Restored && r.Last > 0 }).Last = 0
	}},
	{name: "a snapshot lacks its last entry", check: "replicas", spoil: func(t *testing.T, w *world) {
		w.find(t, 0, func(r *trace.Row) bool {
			return r.Kind == trace.Restored && w.find(t, 0, func(x *trace.Row) bool { return x.Kind == trace.Applied && x.Index >= r.Index+1 }) != nil && w.followed(r.Index)
		}).Index++
	}},
	{name: "an entry takes effect on another base than its own", check: "replicas", spoil: func(t *testing.T, w *world) {
		w.everywhere(w.find(t, 300, written).Index, func(r *trace.Row) { r.Base-- })
	}},
	{name: "two nodes take different entries at one index", check: "replicas", too: "durability, witness, monotone, local-denials", spoil: func(t *testing.T, w *world) {
		last := w.log[len(w.log)-1].row
		last.Effects, last.Base, last.Index, last.Outcome = nil, last.Last, last.Index+1, "applied"
		last.Last = last.Index
		for i, n := range w.nodes[1:] {
			last.Chain, last.Digest = trace.Hash(uint64(1+i)), trace.Hash(uint64(8+i))
			w.write(n, last)
		}
	}},

	{name: "a leader acknowledges before it commits", check: "durability", bug: "ack-first", too: "over-admission-wall, porcupine, ids"},
	{name: "a node ends without what was acknowledged", check: "durability", too: "witness", spoil: func(t *testing.T, w *world) {
		n := w.nodes[1]
		for i := len(n.rows) - 1; i > 0; i-- {
			if r := n.rows[i]; r.Kind == trace.Applied && len(r.Effects) > 0 {
				n.rows = n.rows[:i]
				return
			}
		}
	}},

	{name: "what is in doubt is called refused", check: "in-doubt", bug: "doubt-refused", too: "over-admission-wall, porcupine"},
	{name: "a node decides what nobody asked", check: "in-doubt", too: "witness, durability", spoil: func(t *testing.T, w *world) {
		r := w.find(t, 100, func(r *trace.Row) bool { return r.Kind == trace.Local })
		r.Calls = slices.Clone(r.Calls)
		r.Calls[0].Tag = 1 << 50
	}},
	{name: "an operation is charged twice", check: "in-doubt", too: "witness, over-admission, porcupine, retry-after, all-or-none, ids, monotone", spoil: func(t *testing.T, w *world) {
		var first *trace.Row
		w.find(t, 0, func(r *trace.Row) bool {
			if r.Kind != trace.Round || r.Digest == "" || !w.charged(r.Calls[0].Tag) {
				return false
			}
			if first == nil {
				first = r
				return false
			}
			r.Calls = append(slices.Clone(r.Calls), first.Calls[0])
			return true
		})
	}},

	{name: "cluster time goes back", check: "monotone", too: "replicas", spoil: func(t *testing.T, w *world) {
		rounds := map[string]bool{}
		for _, n := range w.nodes {
			for _, r := range n.rows {
				rounds[r.Digest] = rounds[r.Digest] || r.Kind == trace.Round
			}
		}
		tick := w.find(t, 300, func(r *trace.Row) bool { return r.Kind == trace.Applied && !rounds[r.Digest] })
		w.everywhere(tick.Index, func(r *trace.Row) { r.At, r.T = r.At-2e9, r.T-2e9 })
	}},
	{name: "cluster time jumps ahead", check: "monotone", bug: "time-jumps", too: "local-denials, porcupine, over-admission-wall"},

	{name: "a refund is given twice", check: "witness", bug: "refund-twice", too: "porcupine, local-denials, over-admission, over-admission-wall"},
	{name: "a full bucket's last unit is refused", check: "witness", bug: "one-less", too: "porcupine, local-denials, retry-after"},
	{name: "states are rounded", check: "witness", too: "local-denials, porcupine", spoil: func(t *testing.T, w *world) {
		w.everywhere(w.find(t, 300, written).Index, func(r *trace.Row) {
			f := &r.Effects[0]
			f.Expiry -= f.Expiry % 1e6
			f.State = hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, uint64(f.Expiry)))
		})
	}},
	{name: "a client is told less than was decided", check: "witness", too: "porcupine", spoil: func(t *testing.T, w *world) {
		e := w.answered(t, 500, charge)
		e.Reply = slices.Clone(e.Reply.([]any))
		e.Reply.([]any)[2] = e.Reply.([]any)[2].(int64) + 1
	}},
	{name: "two nodes lead one term", check: "witness", too: "monotone, local-denials", spoil: func(t *testing.T, w *world) {
		r := *w.find(t, 300, func(r *trace.Row) bool { return r.Kind == trace.Round && r.Digest == "" })
		other := w.nodes[0]
		if r.Node == other.id {
			other = w.nodes[1]
		}
		r.Node, r.Calls = other.id, nil
		other.rows = append(other.rows, r)
	}},
	{name: "what was asked later was decided earlier", check: "witness", too: "monotone, porcupine", spoil: func(t *testing.T, w *world) {
		tag := w.events[len(w.events)/4].Tag
		w.answered(t, len(w.events)/4, func(e *history.Event) bool {
			if !charge(e) || !w.charged(e.Tag) {
				return false
			}
			tag = e.Tag
			return true
		})
		for i := range w.events { // as if it had been asked at the very end
			if e := &w.events[i]; e.Tag == tag {
				e.Time += w.until
				e.Process = 1 << 20
			}
		}
	}},

	{name: "a denied call of several limits keeps the first one's charge", check: "all-or-none", bug: "takeall-partial", too: "witness, local-denials, retry-after, durability"},
	{name: "of several limits one is not charged", check: "all-or-none", too: "witness, local-denials, retry-after", spoil: func(t *testing.T, w *world) {
		r := w.find(t, 100, func(r *trace.Row) bool {
			return r.Kind == trace.Round && r.Digest != "" && len(r.Calls) == 1 && r.Calls[0].Op == "takeall" && r.Calls[0].Allowed && r.Calls[0].ID == "" && w.inForce(r.Digest)
		})
		key := r.Calls[0].Parts[1].Key
		w.everywhere(w.entryOf(r.Digest), func(x *trace.Row) {
			x.Effects = slices.DeleteFunc(x.Effects, func(f trace.Effect) bool { return f.Key == key })
		})
	}},
	{name: "several limits name the first wait", check: "retry-after", bug: "takeall-first-wait", too: "witness, local-denials"},
	{name: "an ID is forgotten", check: "ids", bug: "id-forgotten", too: "witness"},
	{name: "an ID is not looked for", check: "ids", bug: "id-not-kept", too: "witness"},
	{name: "what was charged under an ID is given back twice", check: "ids", bug: "refund-id-twice", too: "witness"},
	{name: "a repeated call is answered otherwise", check: "witness", bug: "repeat-differs", too: "over-admission-wall"},
	{name: "another call passes under a known ID", check: "witness", bug: "id-of-another", too: "ids"},
	{name: "a counter admits one more", check: "over-admission", bug: "counter-one-more", too: "over-admission-wall, witness, porcupine, retry-after, local-denials"},
	{name: "a follower out of touch denies several limits", check: "local-denials", bug: "takeall-out-of-touch", seed: 12},

	{name: "a list says that one more is used", check: "witness", bug: "list-one-more", too: "porcupine"},
	{name: "a list lacks a record", check: "witness", spoil: func(t *testing.T, w *world) {
		e := w.answered(t, 300, func(e *history.Event) bool {
			all, _ := e.Reply.([]any)
			return e.F == "list" && strings.HasPrefix(e.Key, "lim:") && len(all) > 1
		})
		e.Reply = e.Reply.([]any)[1:]
	}},
	{name: "a list is of a moment ago", check: "witness", spoil: func(t *testing.T, w *world) {
		e := w.answered(t, 300, func(e *history.Event) bool {
			all, _ := e.Reply.([]any)
			return e.F == "list" && strings.HasPrefix(e.Key, "lim:") && len(all) > 0
		})
		first := slices.Clone(e.Reply.([]any)[0].([]any))
		first[3] = first[3].(int64) + 1
		e.Reply = append([]any{first}, e.Reply.([]any)[1:]...)
	}},
	{name: "a charge is on the wrong side of a calendar's turn-over", check: "over-admission", bug: "calendar-early", too: "witness, local-denials, retry-after, porcupine, replicas"},

	{name: "one unit too many is admitted", check: "over-admission", bug: "one-more", too: "over-admission-wall, witness, porcupine, retry-after, local-denials"},
	{name: "cluster time runs twice as fast", check: "over-admission-wall", bug: "time-runs", too: "monotone, porcupine, local-denials"},

	{name: "a wait is too short", check: "retry-after", bug: "short-waits", too: "witness, porcupine, local-denials"},
	{name: "a wait is too long", check: "retry-after", bug: "long-waits", too: "witness, porcupine, local-denials"},

	{name: "a follower out of touch denies", check: "local-denials", bug: "out-of-touch", too: "porcupine"},
	{name: "a follower's time is ahead", check: "local-denials", bug: "ahead", too: "porcupine"},
	{name: "a follower forgets what was given back through it", check: "local-denials", bug: "no-fence", too: "porcupine"},
	{name: "a follower answers a peek alone", check: "local-denials", spoil: func(t *testing.T, w *world) {
		w.find(t, 0, func(r *trace.Row) bool { return r.Kind == trace.Local && r.Leading && r.Calls[0].Cost == 0 }).Leading = false
	}},
	{name: "a denial is of no state that there was", check: "local-denials", too: "retry-after", spoil: func(t *testing.T, w *world) {
		r := w.find(t, 300, func(r *trace.Row) bool {
			return r.Kind == trace.Local && r.Calls[0].Key == "hot:0" && r.Calls[0].Retry > 0
		})
		r.At -= 3
	}},

	{name: "nobody decides though all are well", check: "availability", bug: "stuck"},
	{name: "a call is never answered", check: "availability", bug: "mute"},
	{name: "a node does not come back", check: "availability", spoil: func(_ *testing.T, w *world) { w.run.Unsettled = []string{"n2 does not answer"} }},
}

// entryOf is the index of the entry with a digest, 0: there is none that took effect.
func (w *world) entryOf(digest string) uint64 {
	for _, x := range w.log {
		if x.row.Digest == digest && x.row.Outcome == "applied" {
			return x.where
		}
	}
	return 0
}

func (w *world) inForce(digest string) bool { return w.entryOf(digest) > 0 }

// followed says that the entry behind the index took effect.
func (w *world) followed(index uint64) bool {
	for _, x := range w.log {
		if x.where == index+1 {
			return x.row.Outcome == "applied"
		}
	}
	return false
}

func TestEachDefectIsReportedByItsCheck(t *testing.T) {
	for i, d := range defects {
		if race && i%5 > 0 {
			continue // slow, and without it all of them are run
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			seeds := uint64(12) // a bug need not show in each run
			if d.bug == "" {
				seeds = 1
			}
			first := max(1, d.seed)
			for seed := first; seed < first+seeds; seed++ {
				w := simulate(seed, d.bug, 12, 200)
				if d.spoil != nil {
					d.spoil(t, w)
					w.sort()
				}
				v := judge(t, w)
				seen := false
				for _, c := range v.Checks {
					switch {
					case c.Status == Invalid && c.Name == d.check:
						seen = true
						if len(c.Examples) == 0 || c.Examples[0].Says == "" {
							t.Errorf("%s says nothing", c.Name)
						}
					case c.Status == Unknown, c.Status == Invalid && !strings.Contains(d.too+",", c.Name+","):
						t.Errorf("seed %d: %s is %s too: %+v", seed, c.Name, c.Status, c.Examples[:min(2, len(c.Examples))])
					}
				}
				if seen && v.Status == Invalid {
					return
				}
			}
			t.Errorf("%s does not report it", d.check)
		})
	}
}

// Without traces the checks that need them have nothing to look at, and say so; what
// clients saw is judged all the same.
func TestClientsAloneRefuteALimiter(t *testing.T) {
	blind := func(bug string) Verdict {
		w := simulate(3, bug, 12, 250)
		for i := range w.events {
			w.events[i].Tag = 0
		}
		for _, n := range w.nodes {
			n.rows = nil
		}
		return judge(t, w)
	}
	status := func(v Verdict, name string) Status {
		i := slices.IndexFunc(v.Checks, func(c Result) bool { return c.Name == name })
		return v.Checks[i].Status
	}
	good := blind("")
	for _, c := range good.Checks {
		want := Unknown
		if slices.Contains([]string{"gates", "logs", "over-admission-wall", "porcupine", "availability"}, c.Name) {
			want = Valid
		}
		if c.Status != want {
			t.Errorf("%s is %s, want %s: %+v", c.Name, c.Status, want, c.Examples)
		}
	}
	if good.Status != Unknown {
		t.Errorf("a run without traces is %s", good.Status)
	}
	if v := blind("forgetful"); status(v, "porcupine") != Invalid {
		t.Errorf("a limiter that forgets is %s to porcupine", status(v, "porcupine"))
	}
	if v := blind("one-more"); status(v, "over-admission-wall") != Invalid {
		t.Errorf("a limiter that admits too much is %s in the time of clients", status(v, "over-admission-wall"))
	}
}

func TestARunBelowItsGatesShowsNothing(t *testing.T) {
	w := simulate(1, "", 12, 150)
	w.run.Gates = map[string]int64{"operations": 1e6, "no such figure": 1}
	v := judge(t, w)
	if v.Status != Unknown || v.Checks[0].Name != "gates" || v.Checks[0].Status != Unknown || len(v.Checks[0].Examples) != 2 {
		t.Errorf("%s", show(v))
	}
}
