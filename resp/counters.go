package resp

import (
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// counters since the start of the server.
type counters struct {
	accepted, rejected atomic.Uint64 // connections
	commands, errors   atomic.Uint64 // executed, and replies that were errors
	failedLogins       atomic.Uint64
	bytesIn, bytesOut  atomic.Uint64
}

// tally counts until the end of a chunk, so that the shared counters are touched
// once for many commands.
type tally struct {
	command  *command // which calls counts; nil: none
	calls    uint64
	commands uint64
	began    time.Duration // when the chunk was taken, since the start of the server
	errors   uint64
	bytesOut uint64
}

// countCalls adds the calls of the command that was called last to those of the chunk.
func (c *client) countCalls() {
	if t := &c.stats; t.calls > 0 {
		c.s.calls.add(t.command, t.calls)
		t.commands += t.calls
		t.calls = 0
	}
}

// count adds the tally to the server's counters.
func (c *client) count() {
	c.countCalls()
	t, n := &c.stats, &c.srv.counters
	if t.commands > 0 {
		n.commands.Add(t.commands)
		now := time.Since(c.srv.started)
		c.used.Store(int64(now))
		c.s.calls.count(now - t.began)
		t.began = now
	}
	if t.errors > 0 {
		n.errors.Add(t.errors)
	}
	if t.bytesOut > 0 {
		n.bytesOut.Add(t.bytesOut)
	}
	t.commands, t.errors, t.bytesOut = 0, 0, 0
}

// calls of the commands of a chunk.
type calls struct {
	of    []uint64   // by the command's index
	which []*command // that have any
	all   uint64
}

func (s *calls) add(cmd *command, n uint64) {
	for len(s.of) <= cmd.index {
		s.of = append(s.of, 0)
	}
	if s.of[cmd.index] == 0 {
		s.which = append(s.which, cmd)
	}
	s.of[cmd.index] += n
	s.all += n
}

// count adds the calls, which took d together, to what the commands cost.
func (s *calls) count(d time.Duration) {
	for _, cmd := range s.which {
		cmd.cost.add(s.of[cmd.index], s.all, d)
		s.of[cmd.index] = 0
	}
	s.which, s.all = s.which[:0], 0
}

// sample is what rates are made of: counters at one moment.
type sample struct{ commands, in, out uint64 }

// perSecond are rates.
type perSecond struct{ commands, in, out float64 }

// rates tells the rates between now and the sample before, which is at least a
// second old, so that it needs no timer: who asks keeps it going.
type rates struct {
	mu     sync.Mutex
	at     time.Time
	sample sample
	rate   perSecond
}

func (r *rates) now(t time.Time, s sample) perSecond {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := t.Sub(r.at).Seconds(); d >= 1 {
		r.rate = perSecond{
			float64(s.commands-r.sample.commands) / d,
			float64(s.in-r.sample.in) / d,
			float64(s.out-r.sample.out) / d,
		}
		r.at, r.sample = t, s
	}
	return r.rate
}

// memory of the process, in bytes.
type memory struct {
	used, rss, peak int64
	allocs          uint64 // objects allocated since the start
}

// readMemory asks the runtime for the heap, and the kernel for what is resident.
func readMemory() memory {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/allocs:objects"}}
	metrics.Read(heap)
	m := memory{used: int64(heap[0].Value.Uint64()), allocs: heap[1].Value.Uint64()}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			m.rss = pages * int64(os.Getpagesize())
		}
	}
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) == nil {
		m.peak = int64(ru.Maxrss) << 10
	}
	return m
}

func infoCPU(_ *Server, w *infoWriter) {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return
	}
	w.field("used_cpu_sys", fmt.Sprintf("%.6f", cpuSeconds(ru.Stime)))
	w.field("used_cpu_user", fmt.Sprintf("%.6f", cpuSeconds(ru.Utime)))
}

func cpuSeconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// human writes a size as Redis does: 895.36K.
func human(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + "B"
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < 4 {
		f /= 1024
		unit++
	}
	return fmt.Sprintf("%.2f%c", f, "KMGTP"[unit])
}
