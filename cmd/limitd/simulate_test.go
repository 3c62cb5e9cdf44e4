package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"limitd/algo"
)

func mustParseLimit(t testing.TB, text string) algo.Limit {
	t.Helper()
	l, err := parseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The window with the most, against a sum over all pairs.
func TestMostInAWindowIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		w := windowMax{length: 1 + rng.Int64N(50)}
		var all []admission
		now, want := int64(0), int64(0)
		for range 200 {
			now += rng.Int64N(4) * rng.Int64N(10)
			units := 1 + rng.Int64N(5)
			w.add(traceCall{at: now}, units)
			all = append(all, admission{now, units})
			sum := int64(0)
			for _, a := range all {
				if a.at > now-w.length {
					sum += a.units
				}
			}
			want = max(want, sum)
		}
		if w.most != want || w.coarse {
			t.Fatalf("round %d: %d (coarse %v), want %d", round, w.most, w.coarse, want)
		}
	}
}

// More admissions in one window than are told apart: never less than the truth, and
// close to it.
func TestMostInAHugeWindowIsAnUpperBound(t *testing.T) {
	const n = 3*maxAdmissions + 17
	w := windowMax{length: n / 2}
	for at := range int64(n) {
		w.add(traceCall{at: at}, 1)
	}
	if !w.coarse || w.most < n/2 || w.most > n/2+8 || cap(w.held) > 2*maxAdmissions {
		t.Errorf("%d, coarse %v, room for %d; exactly it is %d", w.most, w.coarse, cap(w.held), n/2)
	}
}

// Whatever the span, all units are drawn once, in at most so many columns.
func TestPlotKeepsAllUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 400 {
		var p plot
		var want, got cell
		step := int64(1) << rng.IntN(56)
		at := int64(0)
		for range 1 + rng.IntN(60) {
			units, in := rng.Int64N(1000), rng.IntN(2) == 0
			p.add(at, units, in)
			if in {
				want.admitted += units
			} else {
				want.denied += units
			}
			at += rng.Int64N(step)
		}
		columns, width := p.columns()
		for _, c := range columns {
			got.admitted += c.admitted
			got.denied += c.denied
		}
		if got != want || len(columns) > plotColumns || len(columns) == 0 {
			t.Fatalf("round %d, step %d: %d columns of %d ns with %+v, want %+v", round, step, len(columns), width, got, want)
		}
		if p.end > 60*10 && len(columns) < 15 {
			t.Errorf("round %d: %d columns of %d ns for %d ns: too few to see anything", round, len(columns), width, p.end)
		}
	}
}

func TestCellsCanBePutTogether(t *testing.T) {
	for i := 1; i < len(cellWidths); i++ {
		if cellWidths[i]%cellWidths[i-1] != 0 {
			t.Errorf("a cell of %s is no multiple of %s", spell(cellWidths[i]), spell(cellWidths[i-1]))
		}
	}
}

func TestSimulateAsOfAllAlgorithms(t *testing.T) {
	// 1 at once of 3, a refund, a peek; the worst case is not exceeded at random.
	rng := rand.New(rand.NewPCG(7, 8))
	for _, text := range []string{"5/1s", "token:5/1s,burst=2", "leaky:5/1s,queue=3", "fixed:5/1s", "sliding:5/1s", "log:5/1s", "fixed:5/day"} {
		l := mustParseLimit(t, text)
		var trace strings.Builder
		at := int64(1e18)
		for range 3000 {
			at += rng.Int64N(3) * rng.Int64N(3e8)
			fmt.Fprintf(&trace, "%s,%d\n", seconds(at), rng.Int64N(4))
		}
		r := newReplay(l)
		reader := newTraceReader("x", strings.NewReader(trace.String()))
		for {
			c, err := reader.next()
			if err == io.EOF {
				break
			}
			if _, err2 := r.call(c); err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
		}
		if r.calls != 3000 || r.admitted+r.denied+r.peeks != r.calls || r.admitted == 0 || r.denied == 0 || r.window.most > l.WorstCase() {
			t.Errorf("%s: %d calls, %d admitted, %d denied, %d peeks, %d in a window", text, r.calls, r.admitted, r.denied, r.peeks, r.window.most)
		}
	}
}

func TestCostsThatAddUpTooFarAreRefused(t *testing.T) {
	var out bytes.Buffer
	trace := newTraceReader("calls.csv", strings.NewReader(strings.Repeat("0,2305843009213693952\n", 4)))
	err := simulate(&out, mustParseLimit(t, "1/1s"), trace, false)
	if err == nil || !strings.Contains(err.Error(), "calls.csv:4: the costs up to here add up to more than") {
		t.Errorf("got %v\n%s", err, &out)
	}
}

// endless is n lines, none of which is kept.
type endless struct {
	n    int
	line string
	rest []byte
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.n == 0 {
			return 0, io.EOF
		}
		e.n--
		e.rest = []byte(e.line)
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// A long file costs no memory: 32 MB of lines are read with less than 8 MB more.
func TestAHugeTraceIsNotKept(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := newReplay(mustParseLimit(t, "fixed:1000000000/1s"))
	reader := newTraceReader("x", &endless{n: 500_000, line: "1000000000.123456789," + strings.Repeat("0", 42) + "1\n"})
	for {
		c, err := reader.next()
		if err == io.EOF {
			break
		}
		if _, err2 := r.call(c); err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); r.calls != 500_000 || grown > 8<<20 {
		t.Errorf("%d calls, %d bytes more", r.calls, grown)
	}
	runtime.KeepAlive(r)
}
