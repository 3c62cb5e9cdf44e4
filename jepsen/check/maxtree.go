package check

import "math"

// maxTree is a row of numbers to whose tail something is added, and of whose tail the
// greatest is asked, each in the logarithm of its length.
type maxTree struct {
	n    int
	best []int64 // greatest of the node's part, without what is added above it
	more []int64 // added to all of the part
}

func newMaxTree(n int, value func(int) int64) *maxTree {
	t := &maxTree{n: n, best: make([]int64, 4*n), more: make([]int64, 4*n)}
	t.build(1, 0, n, value)
	return t
}

func (t *maxTree) build(node, lo, hi int, value func(int) int64) {
	switch {
	case hi-lo == 0:
	case hi-lo == 1:
		t.best[node] = value(lo)
	default:
		mid := (lo + hi) / 2
		t.build(2*node, lo, mid, value)
		t.build(2*node+1, mid, hi, value)
		t.best[node] = max(t.best[2*node], t.best[2*node+1])
	}
}

// add adds to all numbers from the first-th on.
func (t *maxTree) add(first int, by int64) { t.addTo(1, 0, t.n, first, by) }

func (t *maxTree) addTo(node, lo, hi, first int, by int64) {
	switch {
	case first >= hi:
	case first <= lo:
		t.best[node] += by
		t.more[node] += by
	default:
		mid := (lo + hi) / 2
		t.addTo(2*node, lo, mid, first, by)
		t.addTo(2*node+1, mid, hi, first, by)
		t.best[node] = max(t.best[2*node], t.best[2*node+1]) + t.more[node]
	}
}

// max is the greatest number from the first-th on, and where it is.
func (t *maxTree) max(first int) (int64, int) { return t.maxOf(1, 0, t.n, first) }

func (t *maxTree) maxOf(node, lo, hi, first int) (int64, int) {
	if first >= hi {
		return math.MinInt64 / 2, -1
	}
	if hi-lo == 1 {
		return t.best[node], lo
	}
	mid := (lo + hi) / 2
	a, i := t.maxOf(2*node, lo, mid, first)
	b, j := t.maxOf(2*node+1, mid, hi, first)
	if b > a {
		a, i = b, j
	}
	return a + t.more[node], i
}
