package main

import (
	"bufio"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
)

func TestTheProxyLosesOneReplyAfterTheServerHadTheCall(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var served atomic.Int64
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				for in := bufio.NewScanner(conn); in.Scan(); {
					served.Add(1)
					fmt.Fprintln(conn, "re", in.Text())
				}
				conn.Close()
			}()
		}
	}()
	p, err := newLossy(ln.Addr().String(), "marked")
	if err != nil {
		t.Fatal(err)
	}
	defer p.listener.Close()
	ask := func(conn net.Conn, line string) (string, error) {
		fmt.Fprintln(conn, line)
		return bufio.NewReader(conn).ReadString('\n')
	}
	for n, test := range []struct {
		line string
		lost bool
	}{{"other", false}, {"marked", true}, {"marked", false}} {
		conn, err := net.Dial("tcp", p.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := ask(conn, test.line)
		if test.lost != (err != nil) || !test.lost && got != "re "+test.line+"\n" {
			t.Errorf("%d: %q is answered %q, %v", n, test.line, got, err)
		}
		conn.Close()
	}
	if n := served.Load(); n != 3 {
		t.Errorf("the server had %d calls, not 3", n)
	}
}
