package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

var hostileFor = flag.Duration("hostile", 0, "how long TestHostileClients measures beside them `DURATION` (default 15s, with -short 5s)")

const (
	idleClients = 10_000
	slowClients = 1_000 // they send a command byte by byte, or half of one and no more
	deafClients = 20    // they ask and never read
	rounds      = 3     // of measuring without and with them
)

// TestHostileClients: 10,000 connections that do nothing, 1,000 that take for ever to
// send a command and some that never read cost bounded memory, and a client that works
// beside them gets its answers as soon as without them.
func TestHostileClients(t *testing.T) {
	length := *hostileFor
	switch {
	case length > 0:
	case testing.Short():
		length = 5 * time.Second
	default:
		length = 15 * time.Second
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if need := uint64(idleClients + slowClients + deafClients + 200); files.Cur < need {
		t.Fatalf("this test opens %d files, and may open %d: raise it (ulimit -n %d)", need, files.Cur, need+1000)
	}
	c := startCluster(t, 3)
	nd := c.leader()
	ratios := map[string][]float64{}
	for range rounds {
		alone := latencies(t, nd.r, length/rounds)
		beside := besideTheCrowd(t, nd, length/rounds)
		for kind := range alone {
			t.Logf("p99 of a call that is %s: %v alone, %v beside them", kind, alone[kind], beside[kind])
			ratios[kind] = append(ratios[kind], float64(beside[kind])/float64(alone[kind]))
		}
	}
	for kind, r := range ratios {
		slices.Sort(r)
		if r[rounds/2] > 2 && !testing.Short() { // this program has the race detector then, and measures itself
			t.Errorf("p99 of a call that is %s is %.1f times as long beside them (%.2f)", kind, r[rounds/2], r)
		}
	}
}

// besideTheCrowd is latencies beside all of them, who cost less memory than they might.
func besideTheCrowd(t *testing.T, nd *node, d time.Duration) map[string]time.Duration {
	t.Helper()
	before := rssAnon(t, nd.pid())
	idle, closeIdle := crowd(t, nd.resp, idleClients)
	defer closeIdle()
	with := rssAnon(t, nd.pid())
	each := (with - before) / idleClients
	if each > 8<<10 {
		t.Errorf("an idle connection costs %d bytes", each)
	}
	slow, closeSlow := crowd(t, nd.resp, slowClients)
	defer closeSlow()
	ctx, stop := context.WithCancel(context.Background())
	var hostile sync.WaitGroup
	hostile.Go(func() { drip(ctx, slow) })
	var deaf sync.WaitGroup
	for range deafClients {
		deaf.Go(func() {
			if conn := askAndNeverRead(t, nd.resp); conn != nil {
				context.AfterFunc(ctx, func() { conn.Close() })
			}
		})
	}
	deaf.Wait()
	beside := latencies(t, nd.r, d)
	cost := rssAnon(t, nd.pid()) - with
	stop()
	hostile.Wait()
	t.Logf("%d idle clients cost %d bytes each, %d slow and %d deaf ones %d MB", idleClients, each, slowClients, deafClients, cost>>20)
	if cost > 512<<20 { // resp.max_buffers, and what the collector lets lie
		t.Errorf("%d slow and %d deaf clients cost %d MB", slowClients, deafClients, cost>>20)
	}
	for i := 0; i < len(idle); i += 100 {
		ping(t, idle[i])
	}
	return beside
}

// crowd is n connections that have been answered once, from many source addresses, so
// that ports do not run out.
func crowd(t testing.TB, address string, n int) (conns []net.Conn, closeAll func()) {
	t.Helper()
	conns = make([]net.Conn, n)
	for i := range conns {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%200))}}
		conn, err := d.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		conns[i] = conn
		ping(t, conn)
	}
	return conns, func() {
		for _, conn := range conns {
			conn.Close()
		}
	}
}

func ping(t testing.TB, conn net.Conn) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "PING\r\n")
	var got [len("+PONG\r\n")]byte
	if _, err := io.ReadFull(conn, got[:]); string(got[:]) != "+PONG\r\n" {
		t.Fatalf("%q, %v", got, err)
	}
	conn.SetDeadline(time.Time{})
}

// latencies are the p99 of a client that gets a denial and an admission in turn.
func latencies(t testing.TB, r client, d time.Duration) map[string]time.Duration {
	t.Helper()
	kinds := map[string][]any{
		"denied":  {"CL.THROTTLE", "denied", 0, 1, 86400},
		"allowed": {"CL.THROTTLE", "allowed", 1_000_000, 1_000_000, 1},
	}
	r.mustThrottle("denied", 0, 1, 86400, 1)
	took := map[string][]time.Duration{}
	for began := time.Now(); time.Since(began) < d; {
		for kind, call := range kinds {
			at := time.Now()
			v, err := r.Do(context.Background(), call...).Int64Slice()
			if took[kind] = append(took[kind], time.Since(at)); err != nil || v[0] == 1 != (kind == "denied") {
				t.Fatalf("%v: %v, %v", call, v, err)
			}
		}
	}
	p99 := map[string]time.Duration{}
	for kind, all := range took {
		slices.Sort(all)
		p99[kind] = all[len(all)*99/100]
	}
	return p99
}

// drip sends byte after byte of commands on each connection, a second apart, and on
// each fifth a large half of one and nothing more.
func drip(ctx context.Context, conns []net.Conn) {
	command := []byte("*2\r\n$4\r\nECHO\r\n$60000\r\n")
	large := append(bytes.Clone(command), make([]byte, 30_000)...)
	for i, conn := range conns {
		if i%5 == 0 {
			conn.Write(large)
		}
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for at := 0; ; at++ {
		for i, conn := range conns {
			if i%5 != 0 {
				conn.Write(append(command, 'x')[min(at, len(command)):][:1])
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// askAndNeverRead asks for long answers until the node takes no more, and stays.
func askAndNeverRead(t testing.TB, address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return nil
	}
	for ask := bytes.Repeat([]byte("COMMAND DOCS\r\n"), 100); err == nil; {
		conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		_, err = conn.Write(ask)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a client that never reads is not left waiting: %v", err)
	}
	return conn
}

// rssAnon is the anonymous memory of a process, in bytes.
func rssAnon(t testing.TB, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no RssAnon in %s", text)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
