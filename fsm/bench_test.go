package fsm

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

const benchKeys = 1_000_000

func BenchmarkGet(b *testing.B) {
	f := New(nil)
	fill(b, f, benchKeys, 1<<62)
	tab, keys := f.Table(), make([][]byte, 1<<16)
	for i := range keys {
		keys[i] = key(i * 15485863 % benchKeys)
	}
	var dst [16]byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k := keys[i&(len(keys)-1)]
		if _, _, ok := tab.Get(tab.Hash(0, k), 0, k, []byte{1}, dst[:]); !ok {
			b.Fatal("not found")
		}
	}
}

// BenchmarkApply changes existing keys of a table of a million, 8192 to a batch; ns/key is what one effect takes.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 100, 8192} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f := New(nil)
			fill(b, f, benchKeys, 1<<61)
			l, effects := logOf(0, Turn{}), make([]Effect, size)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				for j := range effects {
					effects[j] = admit((i*size+j)*15485863%benchKeys, 1<<61+int64(i))
				}
				l.Index = f.Applied() + 1
				l.Data = AppendEntry(l.Data[:0], Turn{f.State().Last, 1, 1, 1}, effects)
				b.StartTimer()
				if r := f.Apply(l).(Result); r.Outcome != Applied {
					b.Fatal(r)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/key")
		})
	}
}

// BenchmarkLife fills a table, begins a snapshot, gathers it, flushes: memory, and how long each holds up applying.
func BenchmarkLife(b *testing.B) {
	for _, n := range []int{1_000_000, 5_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				f := New(nil)
				at := time.Now()
				fill(b, f, n, 1<<62)
				b.ReportMetric(float64(time.Since(at).Nanoseconds())/float64(n), "fill-ns/key")
				b.ReportMetric(float64(f.Table().Bytes())/float64(n), "bytes/key")
				at = time.Now()
				runtime.GC()
				b.ReportMetric(float64(time.Since(at).Microseconds()), "gc-µs")
				at = time.Now()
				s, _ := f.Snapshot()
				b.ReportMetric(float64(time.Since(at).Microseconds()), "snapshot-µs")
				at = time.Now()
				x := s.(*stateSnapshot)
				gather(x)
				b.ReportMetric(float64(time.Since(at).Nanoseconds())/float64(n), "gather-ns/key")
				x.written = true
				s.Release()
				at = time.Now()
				apply(b, f, f.Applied()+1, 1, Effect{Op: OpClearAll})
				b.ReportMetric(float64(time.Since(at).Microseconds()), "flush-µs")
			}
		})
	}
}
