package report

import (
	"fmt"
	"math"
)

// ratePanel stacks what ended per second by outcome, under a line for what was asked.
func (r *run) ratePanel(x linear, length int64, all []bucket) *panel {
	p := &panel{
		Title: fmt.Sprintf("Rate: operations per second that ended, stacked by outcome (per %s)", duration(length)),
		Note:  "The line is what was asked. A white gap is a time without service.",
		Axis:  "operations/s", Height: 150, XTicks: timeTicks(x),
	}
	perSecond := 1e9 / float64(length)
	most := 0.0
	for i := range all {
		ended := 0
		for _, took := range all[i].took {
			ended += len(took)
		}
		most = math.Max(most, perSecond*float64(max(ended, all[i].asked)))
	}
	if most == 0 {
		p.Missing = "no operation was recorded"
		return p
	}
	y := linear{0, most * 1.05, p.Height, 0}
	p.YTicks = y.ticks(5, func(v float64) string { return count(int64(v)) })
	below := make([]float64, len(all))
	for k := range outcomes {
		total := 0
		above := make([]float64, len(all))
		for i := range all {
			total += len(all[i].took[k])
			above[i] = below[i] + perSecond*float64(len(all[i].took[k]))
		}
		if total > 0 {
			p.Legend = append(p.Legend, entry{"box", "area " + outcomeClasses[k], outcomeNames[k] + ": " + count(int64(total))})
			p.Shapes = append(p.Shapes, shape{Class: "area " + outcomeClasses[k], D: between(x, y, length, below, above), Title: outcomeNames[k]})
		}
		below = above
	}
	var asked pen
	for i := range all {
		v := y.at(perSecond * float64(all[i].asked))
		if i == 0 {
			asked.move(0, v)
		} else {
			asked.line(x.at(float64(int64(i)*length)), v)
		}
		asked.line(math.Min(x.at(float64(int64(i+1)*length)), plotWidth), v)
	}
	p.Shapes = append(p.Shapes, shape{Class: "asked", D: asked.String(), Title: "asked"})
	p.Legend = append(p.Legend, entry{"line", "asked", "asked: " + count(int64(len(r.ops)))})
	return p
}

// between is the area between two step lines, as one closed path for each stretch in
// which they differ.
func between(x, y linear, length int64, low, high []float64) string {
	var d pen
	edge := func(i int) float64 { return math.Min(x.at(float64(int64(i)*length)), plotWidth) }
	for i := 0; i < len(low); {
		if high[i] == low[i] {
			i++
			continue
		}
		from := i
		d.move(edge(i), y.at(low[i]))
		for ; i < len(low) && high[i] != low[i]; i++ {
			d.line(edge(i), y.at(high[i]))
			d.line(edge(i+1), y.at(high[i]))
		}
		for k := i - 1; k >= from; k-- {
			d.line(edge(k+1), y.at(low[k]))
			d.line(edge(k), y.at(low[k]))
		}
		d.close()
	}
	return d.String()
}
