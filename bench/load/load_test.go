package load

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// server answers every line by a reply, and can be made to stand still.
type server struct {
	mu    sync.Mutex
	still time.Time // no answer before it
	lines int
	reply func(i int) string
}

func (s *server) listen(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return ln.Addr().String()
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		if _, err := r.ReadString('\n'); err != nil {
			return
		}
		s.mu.Lock()
		i, wait := s.lines, time.Until(s.still)
		s.lines++
		s.mu.Unlock()
		time.Sleep(wait)
		if _, err := io.WriteString(c, s.reply(i)); err != nil {
			return
		}
	}
}

func line(b []byte, _ *rand.Rand) []byte { return append(b, "CALL\n"...) }

func run(t *testing.T, p Plan) *Result {
	t.Helper()
	r, err := Run(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	yes = "*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:60\r\n"
	no  = "*5\r\n:1\r\n:9\r\n:0\r\n:6\r\n:60\r\n"
)

func TestRepliesAreCounted(t *testing.T) {
	s := &server{reply: func(i int) string { return []string{yes, no, yes, "-BUSY x\r\n"}[i%4] }}
	r := run(t, Plan{Addrs: []string{s.listen(t)}, Conns: 1, Pipeline: 8, Time: 100 * time.Millisecond, Next: line})
	if s.lines < 8 || r.Allowed != int64(s.lines)/2 || r.Denied != int64(s.lines)/4 || r.Errors != int64(s.lines)/4 || r.FirstError != "BUSY x" || r.Codes["BUSY"] != r.Errors {
		t.Errorf("%d lines: %+v", s.lines, r)
	}
}

// A call that is two commands is answered with the second one.
func TestSeveralRepliesOfOneCall(t *testing.T) {
	s := &server{reply: func(i int) string { return []string{yes, ":1\r\n", no, "-ERR x\r\n"}[i%4] }}
	next := func(b []byte, _ *rand.Rand) []byte { return append(b, "CALL\nWAIT\n"...) }
	r := run(t, Plan{Addrs: []string{s.listen(t)}, Conns: 1, Time: 50 * time.Millisecond, Next: next, Replies: 2})
	if r.Denied != 0 || r.Allowed == 0 || r.Allowed-r.Errors > 1 || r.Errors > r.Allowed {
		t.Errorf("%+v", r)
	}
}

// The rate of arrivals is the plan's, over all addresses.
func TestOpenLoadKeepsItsRate(t *testing.T) {
	a, b := &server{reply: func(int) string { return yes }}, &server{reply: func(int) string { return yes }}
	r := run(t, Plan{Addrs: []string{a.listen(t), b.listen(t)}, Conns: 8, Rate: 2000, Warmup: 100 * time.Millisecond, Time: 500 * time.Millisecond, Next: line})
	if r.Allowed != 1000 || a.lines+b.lines != 1200 || a.lines != b.lines {
		t.Errorf("%d measured, %d and %d sent", r.Allowed, a.lines, b.lines)
	}
}

// The load shares the machine with what it measures: it needs little memory for a connection.
func TestOpenLoadIsLean(t *testing.T) {
	s := &server{reply: func(int) string { return yes }}
	p := Plan{Addrs: []string{s.listen(t)}, Conns: 200, Rate: 2000, Time: 100 * time.Millisecond, Next: line}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(t, p)
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(p.Conns); each > 64<<10 { // the server of this test has its part of it
		t.Errorf("%d bytes were allocated for each connection", each)
	}
}

// A server that stands still owes the time to everything that was due meanwhile; a
// closed load sees it once.
func TestOpenLoadOmitsNothing(t *testing.T) {
	for _, rate := range []float64{1000, 0} {
		s := &server{reply: func(int) string { return yes }}
		addr := s.listen(t)
		time.AfterFunc(200*time.Millisecond, func() {
			s.mu.Lock()
			s.still = time.Now().Add(300 * time.Millisecond)
			s.mu.Unlock()
		})
		r := run(t, Plan{Addrs: []string{addr}, Conns: 1, Rate: rate, Time: time.Second, Next: line})
		if late := r.Quantile(0.8); (rate > 0) != (late > 30*time.Millisecond) {
			t.Errorf("rate %v: a fifth of the commands took longer than %v", rate, late)
		}
		if worst := r.Quantile(1); worst < 250*time.Millisecond {
			t.Errorf("rate %v: the longest took %v", rate, worst)
		}
	}
}

func TestWhatIsSaidOfABrokenConnection(t *testing.T) {
	s := &server{reply: func(int) string { return "?\r\n" }}
	for _, rate := range []float64{0, 1000} {
		r := run(t, Plan{Addrs: []string{s.listen(t)}, Conns: 2, Rate: rate, Time: 50 * time.Millisecond, Next: line})
		if r.Errors == 0 || !strings.Contains(r.FirstError, "the connection broke") {
			t.Errorf("%+v", r)
		}
	}
}

func TestPlansThatMeanNothing(t *testing.T) {
	good := Plan{Addrs: []string{"127.0.0.1:1"}, Conns: 1, Time: time.Second, Next: line}
	for name, change := range map[string]func(*Plan){
		"no address":   func(p *Plan) { p.Addrs = nil },
		"connections":  func(p *Plan) { p.Conns = 0 },
		"a run of":     func(p *Plan) { p.Time = 0 },
		"one by one":   func(p *Plan) { p.Rate, p.Pipeline = 100, 2 },
		"no command":   func(p *Plan) { p.Next = nil },
		"connection r": func(*Plan) {}, // refused
	} {
		p := good
		change(&p)
		if _, err := Run(context.Background(), p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReplies(t *testing.T) {
	for _, tc := range []struct {
		in    string
		first int64
		fails string
		bad   bool
	}{
		{in: yes}, {in: no, first: 1}, {in: "+OK\r\n"}, {in: "$-1\r\n"}, {in: "*-1\r\n"}, {in: ":-7\r\n", first: -7},
		{in: "*2\r\n$3\r\na\r\n\r\n*2\r\n:5\r\n:6\r\n", first: 5},
		{in: "*2\r\n-ERR a\r\n-ERR b\r\n", fails: "ERR a"}, {in: "-BUSY x\r\n", fails: "BUSY x"},
		{in: "", bad: true}, {in: ":\r\n", bad: true}, {in: ":x\r\n", bad: true}, {in: "$5\r\nabc", bad: true}, {in: "PONG\n", bad: true}, {in: ":9999999999999999999\r\n", bad: true},
	} {
		r := bufio.NewReader(strings.NewReader(tc.in))
		first, failed, err := readReply(r)
		if first != tc.first || failed != tc.fails || (err != nil) != tc.bad || !tc.bad && r.Buffered() > 0 {
			t.Errorf("%q: %d, %q, %v", tc.in, first, failed, err)
		}
	}
}
