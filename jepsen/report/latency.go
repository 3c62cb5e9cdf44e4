package report

import (
	"fmt"
	"math"
)

// latencyPanels have the latency of each outcome that occurred, all on one scale.
func (r *run) latencyPanels(x linear, length int64, all []bucket) (panels []*panel) {
	least, most := int64(math.MaxInt64), int64(0)
	var ended [outcomes]int
	for i := range all {
		for k, took := range all[i].took {
			if len(took) > 0 {
				ended[k] += len(took)
				least, most = min(least, took[0]), max(most, took[len(took)-1])
			}
		}
	}
	for k := range outcomes {
		if ended[k] > 0 {
			panels = append(panels, latencyPanel(k, ended[k], x, length, all, float64(max(least, 1)), float64(max(most, 1))))
		}
	}
	return panels
}

// latencyPanel draws the median as a line, the range up to the 99th percentile as an
// area, and the longest as dots.
func latencyPanel(k outcome, ended int, x linear, length int64, all []bucket, least, most float64) *panel {
	p := &panel{
		Title: fmt.Sprintf("Latency of “%s” (%s; per %s, log axis)", outcomeNames[k], count(int64(ended)), duration(length)),
		Axis:  "latency", Height: 104, XTicks: timeTicks(x),
	}
	y := newLogarithmic(least, most, p.Height, 0)
	p.YTicks = y.decades()
	var area, median, high, longest pen
	edge := func(i int) float64 { return math.Min(x.at(float64(int64(i)*length)), plotWidth) }
	for i := 0; i < len(all); {
		if len(all[i].took[k]) == 0 {
			i++
			continue
		}
		from := i
		for ; i < len(all) && len(all[i].took[k]) > 0; i++ {
			took := all[i].took[k]
			p50, p99 := y.at(float64(quantile(took, .5))), y.at(float64(quantile(took, .99)))
			step := (*pen).line
			if i == from {
				step = (*pen).move
			}
			step(&median, edge(i), p50)
			median.line(edge(i+1), p50)
			step(&high, edge(i), p99)
			high.line(edge(i+1), p99)
			step(&area, edge(i), p99)
			area.line(edge(i+1), p99)
			longest.dot((edge(i)+edge(i+1))/2, y.at(float64(took[len(took)-1])))
		}
		for j := i - 1; j >= from; j-- {
			p50 := y.at(float64(quantile(all[j].took[k], .5)))
			area.line(edge(j+1), p50)
			area.line(edge(j), p50)
		}
		area.close()
	}
	class := outcomeClasses[k]
	p.Shapes = []shape{
		{Class: "range " + class, D: area.String()},
		{Class: "p99 " + class, D: high.String(), Title: "99th percentile"},
		{Class: "p50 " + class, D: median.String(), Title: "median"},
		{Class: "longest", D: longest.String(), Title: "longest"},
	}
	p.Legend = []entry{{"line", "p50 " + class, "median"}, {"line", "p99 " + class, "99th percentile"}, {"dots", "longest", "longest"}}
	return p
}
