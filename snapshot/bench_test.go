package snapshot

import (
	"fmt"
	"io"
	"testing"
)

// manyRecords makes n records in name order whose state is their expiry, as a million GCRA keys have.
func manyRecords(n int, expiry int64) []Record {
	records := make([]Record, n)
	for i := range records {
		at := expiry + int64(i)
		records[i] = Record{
			Name:   AppendName(nil, 0, fmt.Appendf(nil, "user:%012d", i), []byte{1}),
			State:  appendInt64(nil, at),
			Expiry: at,
		}
	}
	return records
}

func appendInt64(b []byte, v int64) []byte {
	for i := range 8 {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

// full returns a store with n records.
func full(b *testing.B, n int) *Store {
	s := openTest(b, b.TempDir(), Options{})
	commit(b, s, 1, 1, manyRecords(n, 1000)...)
	return s
}

// What a restart with a million keys waits for: open the file, verify it, give each record to the state machine.
func BenchmarkRestart1M(b *testing.B) {
	s := full(b, 1_000_000)
	dir := s.dir
	s.Close()
	for b.Loop() {
		s, err := OpenStore(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		r, err := s.open()
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		if err := r.Each(func(Record) error { n++; return nil }); err != nil || n != 1_000_000 {
			b.Fatal(n, err)
		}
		s.Close()
	}
}

func BenchmarkCheckBolt1M(b *testing.B) {
	s := full(b, 1_000_000)
	s.Close()
	for b.Loop() {
		if err := CheckBolt(s.Path()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen1M(b *testing.B) {
	s := full(b, 1_000_000)
	for b.Loop() {
		r, err := s.open()
		if err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}

func BenchmarkEach1M(b *testing.B) {
	s := full(b, 1_000_000)
	for b.Loop() {
		b.StopTimer()
		r, err := s.open()
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := r.Each(func(Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStream1M(b *testing.B) {
	s := full(b, 1_000_000)
	for b.Loop() {
		r, err := s.open()
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
		r.Close()
	}
}

func BenchmarkInstall1M(b *testing.B) {
	from := full(b, 1_000_000)
	m, data := stream(b, from)
	index := m.Index
	to := openTest(b, b.TempDir(), Options{})
	for b.Loop() {
		index++
		m.Index = index
		if err := send(b, to, m, data); err != nil {
			b.Fatal(err)
		}
	}
}

// A local snapshot: 50,000 dirty records, in name order, spread over a million.
func BenchmarkCommit50kOf1M(b *testing.B) {
	s := full(b, 1_000_000)
	index := uint64(1)
	for b.Loop() {
		b.StopTimer()
		index++
		records := manyRecords(1_000_000, int64(1000*index))
		dirty := records[:0]
		for i := 0; i < len(records); i += 20 {
			dirty = append(dirty, records[i])
		}
		b.StartTimer()
		commit(b, s, index, 1, dirty...)
	}
}

// Both ways in which a local snapshot is written, of records that are neighbours or far apart.
func BenchmarkWays(b *testing.B) {
	for _, c := range []struct{ there, changed, apart int }{
		{1_000_000, 100_000, 10}, {1_000_000, 100_000, 1}, {1_000_000, 8000, 100}, {100_000, 100_000, 1}, {100_000, 10_000, 10}, {100_000, 10_000, 1}, {0, 100_000, 1},
	} {
		var changed []Record
		for i, r := range manyRecords(max(c.there, c.changed), 5000) {
			if i%c.apart == 0 && len(changed) < c.changed {
				changed = append(changed, r)
			}
		}
		for _, way := range []string{"transaction", "file"} {
			b.Run(fmt.Sprintf("%d of %d, %d apart/%s", c.changed, c.there, c.apart, way), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					s := full(b, c.there)
					k := create(b, s, 5)
					m := fileMeta{Meta: Meta{Index: 5, Term: 1, Configuration: testConf, ConfigurationIndex: 1, Header: Header{Last: 5, T: 1}}}
					b.StartTimer()
					var err error
					if way == "transaction" {
						err = s.commit(&m, changed)
					} else if err = k.spill(changed); err == nil {
						err = s.rebuild(&m, k.runs)
					}
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					k.Release()
					s.Close()
					b.StartTimer()
				}
			})
		}
	}
}
