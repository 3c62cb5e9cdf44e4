package algo_test

import (
	"fmt"
	"testing"
)

// BenchmarkDecide is one decision: of a fresh key, of one in use, and one that is denied.
func BenchmarkDecide(b *testing.B) {
	const now = int64(1_790_000_000e9)
	for _, limit := range []string{
		"1000/10s", "token:1000/10s", "leaky:1000/10s,queue=999", "fixed:1000/10s", "fixed:1000/day,tz=America/New_York",
		"sliding:1000/10s", "log:1000/10s",
	} {
		l := mustParse(b, limit)
		_, used := l.Decide(nil, now, 0, 500, nil)
		_, full := l.Decide(nil, now, 0, 1000, nil)
		for _, c := range []struct {
			name  string
			state []byte
		}{{"fresh", nil}, {"used", used.State}, {"denied", full.State}} {
			b.Run(limit+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				buf := make([]byte, 0, 24)
				for b.Loop() {
					v, e := l.Decide(c.state, now+5, 0, 1, buf)
					sink += v.Remaining + e.Expiry
				}
			})
		}
	}
}

// BenchmarkLog is a log's decision by how many entries count: it reads all of them.
func BenchmarkLog(b *testing.B) {
	const now = int64(1_790_000_000e9)
	for _, n := range []int{10, 100, 1000, 10_000} {
		var state []byte
		for i := range n {
			state = append(state, words(now+int64(i), 1)...)
		}
		for _, name := range []string{"admitted", "denied"} {
			limit := n
			if name == "admitted" {
				limit++
			}
			l := mustParse(b, fmt.Sprintf("log:%d/10s", limit))
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				buf := make([]byte, 0, 24)
				for b.Loop() {
					v, e := l.Decide(state, now+int64(n), 0, 1, buf)
					sink += v.Remaining + e.Expiry
				}
			})
		}
	}
}

// BenchmarkCalendarWindow is what a key costs in a window that is not the one of the
// call before.
func BenchmarkCalendarWindow(b *testing.B) {
	for _, unit := range []string{"day", "week", "month", "year"} {
		l := mustParse(b, "fixed:1/"+unit+",tz=America/New_York")
		b.Run(unit, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, end, _ := l.CalendarWindow(1_790_000_000e9)
				sink += end
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, text := range []string{"100/1m", "fixed:1000/day,tz=Asia/Dhaka"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink += mustParse(b, text).Burst
			}
		})
	}
}
