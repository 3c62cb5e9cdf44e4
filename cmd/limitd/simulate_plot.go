package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	plotColumns = 60
	plotRows    = 4    // of the taller half
	plotCells   = 3600 // cells of time while reading; many make a column in the end
)

// cellWidths are the widths that a cell may have, in ns. Each is a multiple of the
// one before, so that cells can be put together while the trace goes on, whose end
// is not known.
var cellWidths = []int64{
	1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 10e9, 60e9, 600e9, hour, 12 * hour, week, 10 * week,
}

// columnWidths are the widths that people read.
var columnWidths = []int64{
	10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8,
	1e9, 2e9, 3e9, 4e9, 5e9, 10e9, 15e9, 20e9, 30e9, 60e9, 120e9, 180e9, 300e9, 600e9, 900e9, 1200e9, 1800e9,
	hour, 2 * hour, 3 * hour, 4 * hour, 6 * hour, 12 * hour, day, 2 * day, week, 2 * week, 4 * week,
	10 * week, 20 * week, 50 * week, 100 * week, 200 * week,
}

// cell is the units of a stretch of time.
type cell struct{ admitted, denied int64 }

// plot draws units over time, from the first call on.
type plot struct {
	cells []cell
	width int // of a cell: index into cellWidths
	end   int64
}

// add counts units at a time behind the first call.
func (p *plot) add(at, units int64, admitted bool) {
	p.end = at
	for at/cellWidths[p.width] >= plotCells {
		p.widen()
	}
	i := int(at / cellWidths[p.width])
	for len(p.cells) <= i {
		p.cells = append(p.cells, cell{})
	}
	if admitted {
		p.cells[i].admitted += units
	} else {
		p.cells[i].denied += units
	}
}

func (p *plot) widen() {
	p.cells = together(p.cells, int(cellWidths[p.width+1]/cellWidths[p.width]))
	p.width++
}

// together makes one cell of each n.
func together(cells []cell, n int) []cell {
	sums := make([]cell, 0, (len(cells)+n-1)/n)
	for i, c := range cells {
		if i%n == 0 {
			sums = append(sums, cell{})
		}
		last := &sums[len(sums)-1]
		last.admitted += c.admitted
		last.denied += c.denied
	}
	return sums
}

// columns are the cells as they are drawn, and their width in ns: the smallest with
// which all of them fit.
func (p *plot) columns() ([]cell, int64) {
	cell := cellWidths[p.width]
	for _, w := range columnWidths {
		if w%cell == 0 && p.end/w < plotColumns {
			return together(p.cells, int(w/cell)), w
		}
	}
	return nil, 0 // not before 2116
}

// draw draws what was admitted above a line, and what was denied below it, on one
// scale. Something is never drawn as nothing.
func (p *plot) draw(w io.Writer, from string) {
	columns, width := p.columns()
	var top cell
	for _, c := range columns {
		top.admitted, top.denied = max(top.admitted, c.admitted), max(top.denied, c.denied)
	}
	high := max(top.admitted, top.denied)
	if high == 0 {
		return
	}
	rows := func(units int64) int {
		if units == 0 {
			return 0
		}
		return max(1, min(plotRows, int(float64(units)/float64(high)*plotRows+0.5)))
	}
	label := len(strconv.FormatInt(high, 10))
	line := func(left string, mark byte, units func(cell) int64, row int) {
		var b strings.Builder
		for _, c := range columns {
			if rows(units(c)) >= row {
				b.WriteByte(mark)
			} else {
				b.WriteByte(' ')
			}
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%*s |%s", label, left, b.String()), " "))
	}
	number := func(row, last int, n int64) string {
		if row == last {
			return strconv.FormatInt(n, 10)
		}
		return ""
	}
	for row := rows(top.admitted); row > 0; row-- {
		line(number(row, rows(top.admitted), top.admitted), '#', func(c cell) int64 { return c.admitted }, row)
	}
	fmt.Fprintf(w, "%*s +%s\n", label, "", strings.Repeat("-", plotColumns))
	for row := 1; row <= rows(top.denied); row++ {
		line(number(row, rows(top.denied), top.denied), 'x', func(c cell) int64 { return c.denied }, row)
	}
	fmt.Fprintf(w, "%*s  units: # admitted, x denied; a column is %s, the first one from %s\n", label, "", spell(width), from)
}
