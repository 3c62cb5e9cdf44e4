package report

import (
	"math"
	"strconv"
	"strings"
)

// panel is one plot over the time of the run.
type panel struct {
	Title   string // what is plotted, with its unit
	Note    string // how to read it
	Axis    string // along the vertical axis
	Height  float64
	YTicks  []tick
	XTicks  []tick
	Lanes   bool // the vertical ticks are names of lanes
	Bands   []shape
	Shapes  []shape
	Legend  []entry
	Missing string // why there is nothing to see
}

// Foot is the height with the time axis, Middle that of the plot's centre.
func (p *panel) Foot() float64   { return p.Height + axisFoot }
func (p *panel) Middle() float64 { return p.Height / 2 }
func (p *panel) Width() float64  { return plotWidth }
func (p *panel) Margin() float64 { return axisWidth }

// shape is a path, or a rectangle if it has no path, or a text if it has neither size.
type shape struct {
	Class      string // in the style sheet
	D          string
	X, Y, W, H float64
	Text       string
	Title      string // shown when pointed at
}

// entry of a legend. Its sample is a line, dots, a thin bar or a box.
type entry struct{ Kind, Class, Text string }

// pen writes a path.
type pen struct{ b strings.Builder }

func (p *pen) move(x, y float64) { p.to('M', x, y) }
func (p *pen) line(x, y float64) { p.to('L', x, y) }

// dot is a line of no length: a round cap makes it a dot.
func (p *pen) dot(x, y float64) {
	p.move(x, y)
	p.b.WriteString("h0")
}

func (p *pen) close() { p.b.WriteByte('Z') }

func (p *pen) to(command byte, x, y float64) {
	p.b.WriteByte(command)
	p.b.WriteString(pixel(x))
	p.b.WriteByte(' ')
	p.b.WriteString(pixel(y))
}

func (p *pen) empty() bool    { return p.b.Len() == 0 }
func (p *pen) String() string { return p.b.String() }

// pixel is a coordinate with one digit behind the point.
func pixel(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// textWidth is about how wide a text of the plots' small letters is, pixels.
func textWidth(s string) float64 { return 6.2*float64(len([]rune(s))) + 6 }

// bands are the faults behind a plot, each kind in its own colour and, where there is
// room, with its name.
func bands(faults []fault, x linear, p *panel) (all []shape) {
	names := kinds(faults)
	free := 0.0 // up to where a name was written
	for i := range faults {
		f := &faults[i]
		from, to := x.at(float64(f.from)), x.at(float64(f.to))
		class := kindClass(names, f.name)
		all = append(all, shape{Class: "band " + class, X: from, W: math.Max(to-from, 1), H: p.Height, Title: show(f.says())})
		if name := show(f.name); !p.Lanes && from >= free && from+textWidth(name) <= plotWidth {
			all = append(all, shape{Class: "band-name", X: from + 3, Y: 11, Text: name})
			free = from + textWidth(name)
		}
	}
	return all
}

// kindColours is how many colours there are for kinds of faults; names tell them apart.
const kindColours = 7

func kindClass(names []string, name string) string {
	for i, n := range names {
		if n == name {
			return "k" + strconv.Itoa(i%kindColours)
		}
	}
	return "k0"
}

// faultPanel has a lane for each kind of fault.
func (r *run) faultPanel(x linear) *panel {
	const lane = 20.0
	names := kinds(r.faults)
	p := &panel{Title: "What was done to the cluster", Axis: "", Height: math.Max(lane, lane*float64(len(names))), Lanes: true, XTicks: timeTicks(x)}
	for i, n := range names {
		p.YTicks = append(p.YTicks, tick{lane * (float64(i) + .5), show(n)})
	}
	for i, n := range names {
		free := 0.0
		for k := range r.faults {
			f := &r.faults[k]
			if f.name != n {
				continue
			}
			from, to := x.at(float64(f.from)), x.at(float64(f.to))
			y := lane * float64(i)
			p.Shapes = append(p.Shapes, shape{Class: "fault " + kindClass(names, n), X: from, Y: y + 3, W: math.Max(to-from, 3), H: lane - 6, Title: show(f.says())})
			if text := show(strings.Join(f.targets, " ")); text != "" && from >= free && textWidth(text) < math.Max(to-from, 3) {
				p.Shapes = append(p.Shapes, shape{Class: "in-fault", X: from + 4, Y: y + 14, Text: text})
			}
		}
	}
	if len(names) == 0 {
		p.Missing = "no fault was injected"
	}
	return p
}
