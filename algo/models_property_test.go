package algo_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"limitd/algo"
	"limitd/algo/model"
)

// The last time of these tests, in 2103: what is admitted then is over before 2^63.
const lastTime = 42e17

// Each answer of a random sequence of calls on one key, under up to three limits at
// once whose numbers may change from call to call, is the exact model's; so is every
// wait, to the ns; so is what the decision does to the record.
func TestEveryAnswerIsTheModels(t *testing.T) {
	for _, algorithm := range algorithms {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkSequence(t, algorithm, drawAnyCost) })
		})
	}
}

func TestEveryAnswerIsTheModelsWithLimitsSideBySide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSequence(t, "", func(t *rapid.T, capacity int64) int64 { return drawAnyCost(t, capacity) })
	})
}

// drawAnyCost draws weights around what can pass, peeks, refunds, and the extremes.
func drawAnyCost(t *rapid.T, capacity int64) int64 {
	above := capacity + 1 // capacity is at most 2^62
	return rapid.OneOf(
		rapid.Int64Range(0, min(capacity, 3)),
		rapid.Int64Range(0, min(capacity, 3)),
		rapid.Int64Range(1, above),
		rapid.Int64Range(-min(capacity, 3), 0),
		rapid.Int64Range(-above, above),
		rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, math.MinInt64 + 1, capacity, above, -capacity}),
	).Draw(t, "cost")
}

// drawAnyPause draws pauses of the sizes at which answers change, to the ns.
func drawAnyPause(t *rapid.T, unit int64, said algo.Verdict, now int64) int64 {
	around := func(d int64) *rapid.Generator[int64] { return rapid.Int64Range(max(0, d-1), max(0, d)+1) }
	pause := rapid.OneOf(
		rapid.Just(int64(0)),
		around(said.RetryAfter),
		around(said.ResetAfter),
		around(unit-now%unit), // the next window
		rapid.Int64Range(0, unit/4+1),
		rapid.Int64Range(0, unit),
		rapid.Int64Range(0, 2*unit),
	).Draw(t, "pause")
	return min(pause, lastTime-now)
}

func checkSequence(t *rapid.T, algorithm string, cost func(t *rapid.T, capacity int64) int64) {
	shapes := []shape{}
	if algorithm != "" {
		shapes = append(shapes, drawShape(t, algorithm))
	} else {
		for range rapid.IntRange(2, 3).Draw(t, "limits") {
			shapes = append(shapes, drawShape(t, algorithms...))
		}
	}
	var (
		key     = shelf{}
		oracles = map[shape]oracle{}
		now     = rapid.Int64Range(0, 41e17).Draw(t, "start")
		offset  = rapid.SampledFrom([]int64{0, 1, -1, 3600e9, -86400e9}).Draw(t, "offset")
		said    algo.Verdict
		ns      = make([]numbers, len(shapes))
	)
	for i, s := range shapes {
		ns[i] = s.drawNumbers(t)
		if oracles[s] == nil { // the same shape twice is the same record
			oracles[s] = s.oracle()
		}
	}
	for range rapid.IntRange(1, 25).Draw(t, "calls") {
		i := rapid.IntRange(0, len(shapes)-1).Draw(t, "which")
		s := shapes[i]
		if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
			ns[i] = s.drawNumbers(t)
		}
		now += drawAnyPause(t, s.unitTime(), said, now)
		if rapid.IntRange(0, 9).Draw(t, "move the offset") == 0 {
			moved := rapid.Int64Range(-100*3600e9, 100*3600e9).Draw(t, "by")
			offset += moved
			key.move(moved)
		}
		l := mustParseExpr(t, s.expr(ns[i]))
		cost := cost(t, s.capacity(ns[i]))
		r := key.of(l)
		state := r.at(now)
		v, e := l.Decide(state, now, offset, cost, nil)
		want := oracles[s](ns[i], now, now+offset, cost)
		checkModel(t, l, v, want, s.capacity(ns[i]))
		checkRecord(t, l, state, v, e, now, cost)
		if r.apply(e); e.Op != algo.None {
			r.drop(now)
		}
		checkMoments(t, l, r, v, now, offset, cost)
		said = v
	}
}

func mustParseExpr(t *rapid.T, expr string) algo.Limit {
	t.Helper()
	l, err := algo.Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// move is what a change of the calendar's offset has to do to calendar records.
func (s shelf) move(offset int64) {
	for ident, r := range s {
		if id, err := algo.ReadIdent([]byte(ident)); err == nil && id.Zone != "" && r.state != nil {
			r.expiry -= offset
		}
	}
}

// drop forgets a record that an effect left to be read as absent.
func (r *record) drop(now int64) {
	if r.expiry <= now {
		r.state = nil
	}
}

func checkModel(t *rapid.T, l algo.Limit, v algo.Verdict, want model.Answer, capacity int64) {
	t.Helper()
	wait, delay := big.NewInt(algo.Never), new(big.Int)
	if want.Wait != nil {
		wait = want.Wait
	}
	if want.Delay != nil {
		delay = want.Delay
	}
	if v.Allowed != want.Allowed || v.Limit != capacity || !equal(v.Remaining, want.Remaining) ||
		!equal(v.RetryAfter, wait) || !equal(v.ResetAfter, want.Reset) || !equal(v.Delay, delay) {
		t.Fatalf("%s: got %+v, want allowed %v limit %d remaining %v retry %v reset %v delay %v",
			l, v, want.Allowed, capacity, want.Remaining, wait, want.Reset, delay)
	}
	if v.Remaining < 0 || v.Remaining > v.Limit {
		t.Fatalf("%s: remaining is not in 0 to the limit: %+v", l, v)
	}
}

// checkRecord checks what a decision does to the record.
func checkRecord(t *rapid.T, l algo.Limit, state []byte, v algo.Verdict, e algo.Effect, now, cost int64) {
	t.Helper()
	if !v.Allowed || cost == 0 {
		if e.Op != algo.None {
			t.Fatalf("%s: cost %d, allowed %v: effect %+v", l, cost, v.Allowed, e)
		}
		return
	}
	if e.Expiry != now+v.ResetAfter {
		t.Fatalf("%s: the record lives %d ns, but means nothing after %d", l, e.Expiry-now, v.ResetAfter)
	}
	size := map[algo.Algorithm]int{algo.GCRA: 8, algo.Token: 8, algo.Leaky: 8, algo.Fixed: 16, algo.Sliding: 24}[l.Algorithm]
	switch {
	case l.Algorithm != algo.Log:
		if e.Op != algo.Replace || len(e.State) != size || e.Drop != 0 || e.Cut != 0 {
			t.Fatalf("%s: effect %+v", l, e)
		}
	case e.Op != algo.Splice || e.Drop%algo.LogEntry != 0 || e.Cut%algo.LogEntry != 0 || e.Drop+e.Cut > len(state):
		t.Fatalf("%s: effect %+v on %d bytes", l, e, len(state))
	case cost > 0 && (e.Cut != 0 || len(e.State) != algo.LogEntry):
		t.Fatalf("%s: an admission is one entry more: effect %+v", l, e)
	case cost < 0 && len(e.State) > e.Cut:
		t.Fatalf("%s: a refund adds nothing: effect %+v", l, e)
	}
}

// checkMoments looks at the times that were said, and a ns before.
func checkMoments(t *rapid.T, l algo.Limit, r *record, v algo.Verdict, now, offset, cost int64) {
	t.Helper()
	after := func(wait, cost int64) algo.Verdict {
		w, _ := l.Decide(r.at(now+wait), now+wait, offset, cost, nil)
		return w
	}
	if v.RetryAfter > 0 && v.RetryAfter < 1<<62-now {
		if !after(v.RetryAfter, cost).Allowed {
			t.Fatalf("%s: cost %d does not pass after waiting %d ns", l, cost, v.RetryAfter)
		}
		if w := after(v.RetryAfter-1, cost); w.Allowed || w.RetryAfter != 1 {
			t.Fatalf("%s: cost %d passes before %d ns: %+v", l, cost, v.RetryAfter, w)
		}
	}
	if v.ResetAfter >= 1<<62-now {
		return
	}
	// From the expiry on the bytes say the same as none, should they still be there.
	end := now + v.ResetAfter
	for _, cost := range []int64{0, 1, l.Burst, -1} {
		there, _ := l.Decide(r.state, end, offset, cost, nil)
		gone, _ := l.Decide(nil, end, offset, cost, nil)
		if there != gone || r.at(end) != nil {
			t.Fatalf("%s: the record still means something after %d ns: %+v", l, v.ResetAfter, there)
		}
	}
	if v.ResetAfter > 0 {
		if w := after(v.ResetAfter-1, 0); w.ResetAfter != 1 || w.Remaining == l.Burst {
			t.Fatalf("%s: the record means nothing before %d ns: %+v", l, v.ResetAfter, w)
		}
	}
}
