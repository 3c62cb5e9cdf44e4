package report

import (
	"slices"
	"time"
)

// finest is the length of a bucket, unless a run is so long that there would be more
// of them than pixels.
const (
	finest      = int64(100 * time.Millisecond)
	mostBuckets = 800
)

// bucket is what ended in a part of the run.
type bucket struct {
	asked int               // operations that began in it
	took  [outcomes][]int64 // by outcome: how long each took that ended in it, ns, ascending
}

// spread puts the operations into buckets, and returns their length.
func (r *run) spread() (length int64, all []bucket) {
	length = finest
	for i := 0; r.end/length >= mostBuckets; i++ {
		length = finest * []int64{2, 5, 10}[i%3]
		for range i / 3 {
			length *= 10
		}
	}
	all = make([]bucket, r.end/length+1)
	for i := range r.ops {
		o := &r.ops[i]
		if k := o.begin.Time / length; k >= 0 && k < int64(len(all)) {
			all[k].asked++
		}
		if k := o.end.Time / length; o.ended && k >= 0 && k < int64(len(all)) {
			b := &all[k]
			b.took[o.outcome()] = append(b.took[o.outcome()], o.took())
		}
	}
	for i := range all {
		for k := range all[i].took {
			slices.Sort(all[i].took[k])
		}
	}
	return length, all
}

// quantile of a sorted list that is not empty: the lowest value that at least p of
// all do not exceed (nearest rank).
func quantile(sorted []int64, p float64) int64 {
	n := int(p*float64(len(sorted)) + 0.9999999)
	return sorted[min(max(n, 1), len(sorted))-1]
}
