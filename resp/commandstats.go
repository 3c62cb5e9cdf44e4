package resp

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"
)

// What commands cost is measured once per chunk, not once per command: a chunk's time,
// from when its commands were taken to when its replies are written, with the wait for
// the agreement. Each of its commands has an equal share of it as usec, and all of it
// as latency, because no reply leaves before.

// latencyBuckets is the number of powers of two of µs, from 1 µs to 134 s, that latencies are counted by.
const latencyBuckets = 28

// cost of the calls of a command since the start of the server.
type cost struct {
	rejected atomic.Uint64 // before they were executed
	errors   atomic.Uint64 // replies that were errors, of the rejected ones too
	nanos    atomic.Uint64
	latency  [latencyBuckets]atomic.Uint64 // calls, those that were rejected too, by the power of two of µs that their latency is at most
}

// add counts n calls of a chunk of total calls that took d.
func (t *cost) add(n, total uint64, d time.Duration) {
	t.nanos.Add(uint64(d) * n / total)
	us := (max(1, uint64(d)) + 999) / 1000
	t.latency[min(bits.Len64(us-1), latencyBuckets-1)].Add(n)
}

// spread is latency at one moment: cumulative, and the number of all calls.
func (t *cost) spread() (upTo [latencyBuckets]uint64, calls uint64) {
	for i := range t.latency {
		calls += t.latency[i].Load()
		upTo[i] = calls
	}
	return upTo, calls
}

// percentile is an upper bound, in µs, of the latency of a part of the calls.
func percentile(upTo [latencyBuckets]uint64, part float64) int64 {
	calls := upTo[latencyBuckets-1]
	for i, n := range upTo {
		if float64(n) >= part*float64(calls) {
			return 1 << i
		}
	}
	return 1 << (latencyBuckets - 1)
}

// errorCodes counts error replies by their first word. The words are limitd's own, so
// they are few.
type errorCodes struct {
	mu sync.Mutex
	n  map[string]uint64
}

func (e *errorCodes) count(reply []byte) {
	code := reply[1:]
	for i, c := range code {
		if c == ' ' || c == '\r' {
			code = code[:i]
			break
		}
	}
	e.mu.Lock()
	if e.n == nil {
		e.n = map[string]uint64{}
	}
	e.n[string(code)]++
	e.mu.Unlock()
}

// codeCount is how often an error was replied.
type codeCount struct {
	name string
	n    uint64
}

func (e *errorCodes) sorted() []codeCount {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []codeCount
	for _, name := range slices.Sorted(maps.Keys(e.n)) {
		list = append(list, codeCount{name, e.n[name]})
	}
	return list
}

// erred counts an error reply of cmd; nil: of no command.
func (c *client) erred(cmd *command, reply []byte) {
	c.stats.errors++
	c.srv.codes.count(reply)
	if cmd != nil {
		cmd.cost.errors.Add(1)
	}
}

// reject refuses to execute cmd.
func (c *client) reject(cmd *command, text string) {
	cmd.cost.rejected.Add(1)
	c.fail(text)
}

// infoCommandstats has a line for each command that was called. The time is the
// command's share of its chunks' time.
func infoCommandstats(s *Server, w *infoWriter) {
	for _, cmd := range s.table.all {
		t := &cmd.cost
		_, calls := t.spread()
		rejected := t.rejected.Load()
		if calls == 0 {
			continue
		}
		usec := t.nanos.Load() / 1000
		executed := calls - min(rejected, calls)
		w.field("cmdstat_"+cmd.name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			executed, usec, float64(usec)/float64(max(1, executed)), rejected, max(t.errors.Load(), rejected)-rejected))
	}
}

func infoErrorstats(s *Server, w *infoWriter) {
	for _, code := range s.codes.sorted() {
		w.field("errorstat_"+code.name, fmt.Sprintf("count=%d", code.n))
	}
}

// infoLatencystats bounds the latencies of each command from above, by powers of two.
func infoLatencystats(s *Server, w *infoWriter) {
	for _, cmd := range s.table.all {
		if upTo, calls := cmd.cost.spread(); calls > 0 {
			w.field("latency_percentiles_usec_"+cmd.name, fmt.Sprintf("p50=%d.000,p99=%d.000,p99.9=%d.000",
				percentile(upTo, .5), percentile(upTo, .99), percentile(upTo, .999)))
		}
	}
}

// latencyHistogram is LATENCY HISTOGRAM [command …]: a map from commands to their calls
// and a map from µs to how many were answered within. A container stands for its subcommands.
func latencyHistogram(c *client, dst []byte, args [][]byte) []byte {
	list := c.srv.table.all
	if len(args) > 2 {
		list = nil
		for _, name := range args[2:] {
			if cmd := c.srv.table.findFull(name); cmd != nil {
				list = append(append(list, cmd), cmd.subs...)
			}
		}
	}
	type row struct {
		name  string
		upTo  [latencyBuckets]uint64
		calls uint64
	}
	var rows []row
	for _, cmd := range list {
		if upTo, calls := cmd.cost.spread(); calls > 0 {
			rows = append(rows, row{cmd.name, upTo, calls})
		}
	}
	dst = c.p().mapOf(dst, len(rows))
	for _, r := range rows {
		dst = c.p().mapOf(redcon.AppendBulkString(dst, r.name), 2)
		dst = appendIntPair(dst, "calls", int64(r.calls))
		steps, before := 0, uint64(0)
		for _, n := range r.upTo {
			steps += oneIf(n > before)
			before = n
		}
		dst = c.p().mapOf(redcon.AppendBulkString(dst, "histogram_usec"), steps)
		before = 0
		for i, n := range r.upTo {
			if n > before {
				dst = redcon.AppendInt(redcon.AppendInt(dst, 1<<i), int64(n))
			}
			before = n
		}
	}
	return dst
}
