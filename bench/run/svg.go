package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// plotSVG draws latencies against rates of arrivals: of each series the p99 as a line, the
// p50 dashed. Both axes are logarithmic.
func plotSVG(title string, all []series) string {
	const width, height, left, top, right, bottom = 760.0, 420.0, 70.0, 40.0, 20.0, 50.0
	minX, maxX, minY, maxY := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, s := range all {
		for _, p := range s.points {
			minX, maxX = min(minX, p.rate), max(maxX, p.rate)
			minY, maxY = min(minY, p.p50), max(maxY, p.p99)
		}
	}
	minX, maxX, minY, maxY = minX*0.8, maxX*1.2, minY*0.8, maxY*1.2
	x := func(v float64) float64 {
		return left + (math.Log(v)-math.Log(minX))/(math.Log(maxX)-math.Log(minX))*(width-left-right)
	}
	y := func(v float64) float64 {
		return height - bottom - (math.Log(v)-math.Log(minY))/(math.Log(maxY)-math.Log(minY))*(height-top-bottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%g" y="22" font-size="15">%s</text>`+"\n", left, html.EscapeString(title))
	grid := func(v float64, text string, vertical bool) {
		x1, y1, x2, y2, tx, ty, anchor := left, y(v), width-right, y(v), left-6, y(v)+4, "end"
		if vertical {
			x1, y1, x2, y2, tx, ty, anchor = x(v), top, x(v), height-bottom, x(v), height-bottom+18, "middle"
		}
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x1, y1, x2, y2, tx, ty, anchor, text)
	}
	for _, v := range ticks(minX, maxX) {
		grid(v, short(v), true)
	}
	for _, v := range ticks(minY, maxY) {
		grid(v, short(v), false)
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">arrivals per second</text>`+"\n", (left+width-right)/2, height-10)
	fmt.Fprintf(&b, `<text x="16" y="%g" text-anchor="middle" transform="rotate(-90 16 %g)">latency, ms</text>`+"\n", (top+height-bottom)/2, (top+height-bottom)/2)
	for i, s := range all {
		color := []string{"#0b62a4", "#c23b22", "#3b7a3b", "#7a3b7a"}[i%4]
		for _, q := range []struct {
			name, dash string
			of         func(point) float64
		}{{"p99", "", func(p point) float64 { return p.p99 }}, {"p50", ` stroke-dasharray="5 4"`, func(p point) float64 { return p.p50 }}} {
			var at []string
			for _, p := range s.points {
				at = append(at, fmt.Sprintf("%.1f,%.1f", x(p.rate), y(q.of(p))))
			}
			fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(at, " "), color, q.dash)
		}
		fmt.Fprintf(&b, `<text x="%g" y="%g" fill="%s">%s (p99; dashed: p50)</text>`+"\n", left+12, top+18+16*float64(i), color, html.EscapeString(s.name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// ticks are 1, 2 and 5 times the powers of ten within.
func ticks(from, to float64) (all []float64) {
	for p := math.Pow(10, math.Floor(math.Log10(from))); p <= to; p *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := m * p; v >= from && v <= to {
				all = append(all, v)
			}
		}
	}
	return all
}

func short(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%gk", v/1000)
	}
	return fmt.Sprintf("%g", math.Round(v*1000)/1000)
}
