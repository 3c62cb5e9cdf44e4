package report

import (
	"math"
	"strconv"
	"time"
)

// Sizes of a plot, in CSS pixels.
const (
	plotWidth = 840.0
	axisWidth = 92.0
	axisFoot  = 22.0 // under the plot, for the labels of the time axis
)

// tick is a mark on an axis.
type tick struct {
	At    float64 // pixels
	Label string
}

// linear maps values onto pixels.
type linear struct{ from, to, low, high float64 }

func (s linear) at(v float64) float64 {
	if s.to == s.from {
		return s.low
	}
	return s.low + (v-s.from)/(s.to-s.from)*(s.high-s.low)
}

// timeScale is the axis of time, the same under all plots.
func timeScale(end int64) linear { return linear{0, math.Max(float64(end), 1), 0, plotWidth} }

// step is the roundest distance between about n ticks in a range: 1, 2 or 5 times a
// power of ten.
func step(span float64, n int) float64 {
	if span <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, m := range []float64{1, 2, 5} {
		if span/(m*power) <= float64(n) {
			return m * power
		}
	}
	return 10 * power
}

// timeTicks label the axis of time in whole seconds, or in parts of one.
func timeTicks(s linear) (all []tick) {
	d := step((s.to-s.from)/1e9, 12)
	for i := 0; float64(i)*d*1e9 <= s.to*1.0001; i++ {
		v := float64(i) * d
		all = append(all, tick{s.at(v * 1e9), strconv.FormatFloat(v, 'f', -1, 32) + " s"})
	}
	return all
}

// ticks label a linear axis.
func (s linear) ticks(n int, label func(float64) string) (all []tick) {
	d := step(s.to-s.from, n)
	for v := math.Ceil(s.from/d-1e-9) * d; v <= s.to+d*1e-9; v += d {
		if math.Abs(v) < d*1e-6 {
			v = 0
		}
		all = append(all, tick{s.at(v), label(v)})
	}
	return all
}

// logarithmic maps positive values onto pixels by their logarithm.
type logarithmic struct{ linear }

// newLogarithmic spans least to most, both positive, with some room, and a decade at
// least.
func newLogarithmic(least, most, low, high float64) logarithmic {
	from, to := math.Log10(least)-.1, math.Log10(most)+.1
	if to-from < 1.2 {
		from, to = math.Floor(from), math.Ceil(to)
	}
	return logarithmic{linear{from, to, low, high}}
}

func (s logarithmic) at(v float64) float64 {
	return s.linear.at(math.Log10(math.Max(v, math.Pow(10, s.from))))
}

// decades label each power of ten, of ns.
func (s logarithmic) decades() (all []tick) {
	for e := math.Ceil(s.from); e <= s.to; e++ {
		all = append(all, tick{s.linear.at(e), decade(e)})
	}
	return all
}

// decade is 10^e ns as people write it.
func decade(e float64) string {
	d := time.Duration(math.Pow(10, e))
	switch {
	case d >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
	case d >= time.Millisecond:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d >= time.Microsecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}
