package report

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// noTime: cluster time begins at a wall clock. What is near 0 is the answer of a node
// that has applied nothing yet.
const noTime = int64(24 * time.Hour)

// reading is cluster time minus the harness's, ns, at a time of the run.
type reading struct {
	time, offset int64
	term         uint64 // of a leader's decision
}

// clockPanel draws cluster time minus harness time, from where it was at first. A
// flat line is one clock; a step down at a change of leaders is the delay that a
// failover loses; a step up would be time that nobody waited for.
func (r *run) clockPanel(x linear) *panel {
	p := &panel{
		Title: "Cluster time minus harness time, from where it was at first",
		Note:  "The dots are what each node answered to RL.TIME, an estimate in whole ms.",
		Axis:  "difference", Height: 150, XTicks: timeTicks(x),
	}
	if len(r.rounds) > 0 {
		p.Note += " The line is the time of the leaders' decisions, exact."
	}
	var decided []reading
	for _, one := range r.rounds {
		decided = append(decided, reading{one.time, one.at - one.time, one.term})
	}
	told := map[string][]reading{}
	for _, s := range r.samples {
		if s.ClusterNS+s.Time > noTime {
			told[s.Node] = append(told[s.Node], reading{s.Time, s.ClusterNS, s.Term})
		}
	}
	zero, ok := int64(0), false
	if len(decided) > 0 {
		zero, ok = decided[0].offset, true
	} else if len(r.samples) > 0 {
		i := slices.IndexFunc(r.nodes, func(id string) bool { return len(told[id]) > 0 })
		if i >= 0 {
			zero, ok = told[r.nodes[i]][0].offset, true
		}
	}
	if !ok {
		p.Missing = "no samples with a time and no traces"
		return p
	}
	y := clockScale(zero, decided, told, p.Height)
	unit, name := clockUnit(y)
	p.YTicks = y.ticks(5, func(v float64) string { return strconv.FormatFloat(v/unit, 'g', 6, 64) + " " + name })
	for i, id := range r.nodes {
		class := "node n" + strconv.Itoa(i%kindColours)
		p.Legend = append(p.Legend, entry{"dots", class + " dots", show(id)})
		var dots pen
		last := math.Inf(-1)
		for _, at := range told[id] {
			if px := x.at(float64(at.time)); px-last >= 2 {
				dots.dot(px, y.at(float64(at.offset-zero)))
				last = px
			}
		}
		if !dots.empty() {
			p.Shapes = append(p.Shapes, shape{Class: class + " dots", D: dots.String(), Title: show(id) + ", RL.TIME"})
		}
	}
	if len(decided) > 0 {
		p.Shapes = append(p.Shapes, shape{Class: "decided", D: sparse(decided, zero, x, y), Title: "decisions"})
		p.Legend = append(p.Legend, entry{"line", "decided", "leaders' decisions"})
	}
	return p
}

// clockScale holds all readings, and at least a millisecond to both sides.
func clockScale(zero int64, decided []reading, told map[string][]reading, height float64) linear {
	low, high := -1e6, 1e6
	look := func(all []reading) {
		for _, at := range all {
			low = math.Min(low, float64(at.offset-zero))
			high = math.Max(high, float64(at.offset-zero))
		}
	}
	look(decided)
	for _, all := range told {
		look(all)
	}
	room := (high - low) * .06
	return linear{low - room, high + room, height, 0}
}

func clockUnit(y linear) (float64, string) {
	switch span := y.to - y.from; {
	case span > 2e5*86400e9:
		return 86400e9 * 365.25, "a"
	case span > 1e4*1e9:
		return 3600e9, "h"
	case span > 1e10:
		return 1e9, "s"
	}
	return 1e6, "ms"
}

// sparse draws the lowest and the highest reading of each pixel, and no line over
// changes of leaders and gaps.
func sparse(all []reading, zero int64, x, y linear) string {
	var d pen
	const gap = 10 // pixels
	before, term := math.Inf(-1), uint64(0)
	for i := 0; i < len(all); {
		px := math.Floor(x.at(float64(all[i].time)))
		low, high := all[i].offset, all[i].offset
		move := px-before > gap || all[i].term != term
		before, term = px, all[i].term
		for ; i < len(all) && math.Floor(x.at(float64(all[i].time))) == px && all[i].term == term; i++ {
			low, high = min(low, all[i].offset), max(high, all[i].offset)
		}
		if move {
			d.move(px, y.at(float64(low-zero)))
		} else {
			d.line(px, y.at(float64(low-zero)))
		}
		if high != low || move {
			d.line(px+1, y.at(float64(high-zero)))
		}
	}
	return d.String()
}
