package algo_test

import (
	"fmt"
	"math/big"
	"time"

	"pgregory.net/rapid"

	"limitd/algo"
	"limitd/algo/model"
)

// shape is what identifies a record on a key; numbers are what may change from call
// to call.
type shape struct {
	algorithm string
	period    int64 // ms; 0: a calendar window
	unit      string
	zone      string
	start     time.Weekday
	hour      int
}

type numbers struct {
	limit int64
	extra int64 // burst, queue; -1: not given
}

var algorithms = []string{"gcra", "token", "leaky", "fixed", "sliding", "log", "calendar"}

// Zones that do most of what zones do: none, half hours, a half hour of summer,
// changes at midnight and a minute after it, a day left out, 45 minutes.
var zones = []string{
	"UTC", "Asia/Dhaka", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Pacific/Apia",
	"America/Sao_Paulo", "America/St_Johns", "Asia/Kathmandu", "Africa/Cairo", "Antarctica/Troll",
}

func drawShape(t *rapid.T, algorithms ...string) shape {
	s := shape{algorithm: rapid.SampledFrom(algorithms).Draw(t, "algorithm")}
	if s.algorithm == "calendar" {
		s.algorithm = "fixed"
		s.unit = rapid.SampledFrom([]string{"day", "week", "month", "year"}).Draw(t, "unit")
		s.zone = rapid.SampledFrom(zones).Draw(t, "zone")
		s.hour = rapid.IntRange(0, 23).Draw(t, "hour")
		if s.start = time.Monday; s.unit == "week" {
			s.start = time.Weekday(rapid.IntRange(0, 6).Draw(t, "start"))
		}
		return s
	}
	most := int64(1<<62) / 1e6
	if s.gcra() == 0 {
		most /= 2
	}
	s.period = rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, 100_000), rapid.Int64Range(1, most)).Draw(t, "period")
	return s
}

// gcra is 1 if the record is a time, 0 if it counts.
func (s shape) gcra() int {
	switch s.algorithm {
	case "gcra", "token", "leaky":
		return 1
	}
	return 0
}

// drawNumbers draws limits from one per period to one per ns.
func (s shape) drawNumbers(t *rapid.T) numbers {
	most := s.period * 1e6
	if s.unit != "" {
		most = 23 * 3600 * 1e9
	}
	n := numbers{extra: -1}
	n.limit = rapid.OneOf(rapid.Int64Range(1, min(20, most)), rapid.Int64Range(1, min(20, most)), rapid.Int64Range(max(1, most/50), most)).Draw(t, "limit")
	if s.gcra() == 0 {
		return n
	}
	room := (1 << 62) / s.interval(n) // units of it
	if rapid.Bool().Draw(t, "with burst or queue") || n.limit > room {
		n.extra = rapid.OneOf(rapid.Int64Range(1, min(20, room)), rapid.Int64Range(1, room)).Draw(t, "extra")
		if s.algorithm == "leaky" {
			n.extra--
		}
	}
	return n
}

func (s shape) interval(n numbers) int64 {
	i := s.period * 1e6 / n.limit
	if i*n.limit < s.period*1e6 {
		i++
	}
	return i
}

func (s shape) expr(n numbers) string {
	period := s.unit
	if period == "" {
		period = fmt.Sprintf("%dms", s.period)
	}
	e := fmt.Sprintf("%s:%d/%s", s.algorithm, n.limit, period)
	switch {
	case s.unit != "":
		e += fmt.Sprintf(",tz=%s,hour=%d", s.zone, s.hour)
		if s.unit == "week" {
			e += ",start=" + []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}[s.start]
		}
	case n.extra >= 0 && s.algorithm == "leaky":
		e += fmt.Sprintf(",queue=%d", n.extra)
	case n.extra >= 0:
		e += fmt.Sprintf(",burst=%d", n.extra)
	}
	return e
}

// capacity is how much can pass at once.
func (s shape) capacity(n numbers) int64 {
	switch {
	case s.algorithm == "leaky":
		return max(n.extra, 0) + 1
	case n.extra >= 0:
		return n.extra
	}
	return n.limit
}

// oracle answers as the record of a shape should.
type oracle func(n numbers, now, date, cost int64) model.Answer

func (s shape) oracle() oracle {
	big := big.NewInt
	switch s.algorithm {
	case "gcra", "token":
		var m model.Bucket
		return func(n numbers, now, _, cost int64) model.Answer {
			return m.Take(big(now), big(s.interval(n)), big(s.capacity(n)), big(cost))
		}
	case "leaky":
		var m model.Queue
		return func(n numbers, now, _, cost int64) model.Answer {
			return m.Take(big(now), big(s.interval(n)), big(s.capacity(n)), big(cost))
		}
	case "sliding":
		var m model.Sliding
		return func(n numbers, now, _, cost int64) model.Answer {
			return m.Take(big(now), big(s.period*1e6), big(n.limit), big(cost))
		}
	case "log":
		var m model.Log
		return func(n numbers, now, _, cost int64) model.Answer {
			return m.Take(big(now), big(s.period*1e6), big(n.limit), big(cost))
		}
	}
	var m model.Fixed
	if s.unit == "" {
		windows := model.Every{Length: big(s.period * 1e6)}
		return func(n numbers, now, _, cost int64) model.Answer {
			return m.Take(big(now), windows, big(n.limit), big(cost))
		}
	}
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		panic(err)
	}
	windows := &model.Calendar{Unit: s.unit, Zone: zone, Start: s.start, Hour: s.hour}
	return func(n numbers, _, date, cost int64) model.Answer {
		return m.Take(big(date), windows, big(n.limit), big(cost))
	}
}

// unit is a time at which answers of the shape change.
func (s shape) unitTime() int64 {
	switch s.unit {
	case "":
		return s.period * 1e6
	case "day":
		return 24 * 3600e9
	case "week":
		return 7 * 24 * 3600e9
	case "month":
		return 30 * 24 * 3600e9
	}
	return 365 * 24 * 3600e9
}

// shelf is a key: a record for each identity that it has been limited under.
type shelf map[string]*record

func (s shelf) of(l algo.Limit) *record {
	r := s[string(l.Ident())]
	if r == nil {
		r = &record{}
		s[string(l.Ident())] = r
	}
	return r
}
