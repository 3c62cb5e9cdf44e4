package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// result is one row of the report: samples, and the bound that they must keep.
type result struct {
	name    string
	unit    string
	bound   float64
	ratio   bool    // samples are pairs (ours, baseline), and the median of ours/baseline must reach the bound
	less    bool    // the ratio must not exceed the bound
	worst   bool    // the largest sample counts, not the median
	free    bool    // there is no bound
	stretch float64 // what would be better still; 0: nothing is said
	digits  int     // of values that are no ratios; 0: 2, -1: none
	plot    string  // file of the plot that shows series
	series  []series
	other   string      // what the second of a pair is of; "": the baseline
	samples [][]float64 // one value, or a pair
	notes   []string
	missing string // why nothing was measured: neither passed nor missed
}

func (r *result) add(values ...float64) { r.samples = append(r.samples, values) }

func (r *result) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// lacks is the row if it could not be measured for want of something; other errors stay.
func (r *result) lacks(err error) (*result, error) {
	var m missing
	if !errors.As(err, &m) {
		return nil, err
	}
	r.missing = string(m)
	return r, nil
}

// figures are the samples, or their ratios.
func (r *result) figures() []float64 {
	figures := make([]float64, len(r.samples))
	for i, s := range r.samples {
		figures[i] = s[0]
		if r.ratio {
			figures[i] /= s[1]
		}
	}
	return figures
}

// value is the figure that is held against the bound.
func (r *result) value() float64 {
	if r.worst {
		return slices.Max(r.figures())
	}
	return median(r.figures())
}

// ok says that the figure was measured and is within its bound, if there is one.
func (r *result) ok() bool {
	if r.missing != "" {
		return false
	}
	if r.free {
		return true
	}
	if r.ratio && !r.less {
		return r.value() >= r.bound
	}
	return r.value() <= r.bound
}

func (r *result) places() int {
	if r.digits == 0 || r.ratio {
		return 2
	}
	return max(0, r.digits)
}

// median of at least one value; of an even number, the mean of the two in the middle.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", r.name)
	if r.missing != "" {
		fmt.Fprintf(w, "  NOT MEASURED: %s\n", r.missing)
		return
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if r.ratio {
		other := r.other
		if other == "" {
			other = "baseline"
		}
		fmt.Fprintf(tab, "round\tlimitd %s\t%s %s\tratio\t\n", r.unit, other, r.unit)
		for i, s := range r.samples {
			fmt.Fprintf(tab, "%d\t%.0f\t%.0f\t%.2f\t\n", i+1, s[0], s[1], s[0]/s[1])
		}
	} else {
		fmt.Fprintf(tab, "round\t%s\t\n", r.unit)
		for i, s := range r.samples {
			fmt.Fprintf(tab, "%d\t%.*f\t\n", i+1, r.places(), s[0])
		}
	}
	tab.Flush()
	for _, n := range r.notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
	if r.free {
		fmt.Fprintf(w, "  median %.*f\n", r.places(), r.value())
		return
	}
	which, relation, verdict := "median", "at most", "ok"
	if r.ratio {
		which = "median ratio"
		if !r.less {
			relation = "at least"
		}
	} else if r.worst {
		which = "slowest"
	}
	if !r.ok() {
		verdict = "MISSED"
	}
	fmt.Fprintf(w, "  %s %.*f, required %s %g: %s\n", which, r.places(), r.value(), relation, r.bound, verdict)
}
