package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestTenThousandIdleConnections: they cost little memory and nothing else.
func TestTenThousandIdleConnections(t *testing.T) {
	const idle = 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if files.Cur < idle+200 {
		t.Fatalf("this test opens %d connections, and may open %d files: raise it (ulimit -n %d)", idle, files.Cur, idle+1000)
	}
	c := startCluster(t, 3)
	nd := c.others(c.leader())[0]
	before := rssAnon(t, nd.pid())
	ping := func(conn net.Conn) {
		t.Helper()
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprint(conn, "PING\r\n")
		if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); line != "+PONG\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	conns := make([]net.Conn, idle)
	for i := range conns {
		// Many source addresses, so that ports do not run out.
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%200))}}
		conn, err := d.Dial("tcp", nd.resp)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		conns[i] = conn
		ping(conn)
	}
	began := time.Now()
	const limit = 1_000_000
	var beside tally
	for range 200 {
		beside.call(nd.r, "beside", limit)
	}
	decided(t, "beside idle connections", beside, began)
	checkCount(t, nd.r, "beside", limit, beside)
	took := time.Since(began)
	each := (rssAnon(t, nd.pid()) - before) / idle
	t.Logf("%d idle connections: %d bytes of memory each; 200 calls beside them took %v", idle, each, took)
	if each > 16<<10 {
		t.Errorf("an idle connection costs %d bytes", each)
	}
	for i := 0; i < idle; i += 100 { // they still live
		ping(conns[i])
	}
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
