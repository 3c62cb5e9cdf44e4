package e2e

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// lossy is a proxy in front of a node. Once it is armed it loses one reply, to the
// next request that has the mark: the connection ends in its place. The node has done
// what was asked by then.
type lossy struct {
	address  string
	upstream string
	mark     []byte

	mu    sync.Mutex
	armed bool
}

func newLossy(t testing.TB, upstream, mark string) *lossy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	p := &lossy{address: ln.Addr().String(), upstream: upstream, mark: []byte(mark)}
	go func() {
		for {
			down, err := ln.Accept()
			if err != nil {
				return // closed
			}
			go p.serve(down)
		}
	}()
	return p
}

// arm has the proxy lose a reply; disarm says whether it did.
func (p *lossy) arm() { p.set(true) }

func (p *lossy) disarm() (lost bool) { return !p.set(false) }

func (p *lossy) set(armed bool) (was bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, p.armed = p.armed, armed
	return was
}

func (p *lossy) serve(down net.Conn) {
	defer down.Close()
	up, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer up.Close()
	marked := make(chan bool, 1) // the next reply is the one to lose
	go func() {
		defer up.Close()
		for b := make([]byte, 64<<10); ; {
			n, err := down.Read(b)
			if bytes.Contains(b[:n], p.mark) && p.set(false) {
				marked <- true
			}
			if _, failed := up.Write(b[:n]); failed != nil || err != nil {
				return
			}
		}
	}()
	for b := make([]byte, 64<<10); ; {
		n, err := up.Read(b)
		select {
		case <-marked:
			return
		default:
		}
		if _, failed := down.Write(b[:n]); failed != nil || err != nil {
			return
		}
	}
}
