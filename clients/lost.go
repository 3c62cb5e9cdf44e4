package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"limitd/proc/nodes"
)

// lossy is a proxy in front of a node that loses one reply: the first one to a
// request which holds the mark. The node has charged the call by then, and the
// client sees its connection end.
type lossy struct {
	listener net.Listener
	upstream string
	mark     []byte
	lost     atomic.Bool
}

func newLossy(upstream, mark string) (*lossy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &lossy{listener: ln, upstream: upstream, mark: []byte(mark)}
	go func() {
		for {
			down, err := ln.Accept()
			if err != nil {
				return // closed
			}
			go p.serve(down)
		}
	}()
	return p, nil
}

func (p *lossy) serve(down net.Conn) {
	defer down.Close()
	up, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer up.Close()
	var marked atomic.Bool // the next reply is the one to lose
	go func() {
		defer up.Close()
		relay(up, down, func(b []byte) bool {
			if bytes.Contains(b, p.mark) && p.lost.CompareAndSwap(false, true) {
				marked.Store(true)
			}
			return true
		})
	}()
	relay(down, up, func([]byte) bool { return !marked.Load() })
}

// relay copies what pass lets through, until it does not.
func relay(to, from net.Conn, pass func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !pass(buf[:n]) {
			return
		}
		if _, failed := to.Write(buf[:n]); failed != nil || err != nil {
			return
		}
	}
}

// lose finds out whether the client repeats a call whose reply was lost: then a
// plain call is charged twice, and the client never knows. Under an ID it must be
// charged once all the same.
func (m *matrix) lose(ctx context.Context, r *row, at *nodes.Node) error {
	if r.client.generator {
		return nil
	}
	k := keysFor(r, lostReply, 0)
	a, charged, err := m.loseOne(ctx, r, at, k.plain, "CL.THROTTLE", k.plain, m.limit-1, 1, 86400)
	if err != nil {
		return err
	}
	r.resends = charged > 1
	if a.ok != r.resends {
		return fmt.Errorf("a call whose reply was lost is charged %d times and answered %q", charged, a.text)
	}
	a, charged, err = m.loseOne(ctx, r, at, k.byID, "RL.TAKE", k.byID, m.window(), "ID", k.byID)
	if err != nil {
		return err
	}
	if charged != 1 || a.ok && a.number(0) != 1 {
		return fmt.Errorf("a call with an ID whose reply was lost is charged %d times and answered %q", charged, a.text)
	}
	return nil
}

// loseOne makes a call behind a proxy that loses its reply, and returns what the
// client was told and how often the server has charged it.
func (m *matrix) loseOne(ctx context.Context, r *row, at *nodes.Node, key string, command ...any) (a answer, charged int64, err error) {
	p, err := newLossy(at.Addr, key)
	if err != nil {
		return a, 0, err
	}
	defer p.listener.Close()
	d, err := startDriver(r.client, m.dir, p.listener.Addr().String(), login{})
	if err != nil {
		return a, 0, err
	}
	defer d.stop()
	// A connection that has carried a call is a good one to lose.
	if a, err = d.ask("call", "CL.THROTTLE", "lost:before:"+slug(r.client.name), m.limit-1, 1, 86400); err != nil {
		return a, 0, err
	} else if !a.ok {
		return a, 0, fmt.Errorf("the call before is answered %q%s", a.text, d.said)
	}
	if a, err = d.ask(append([]any{"call"}, command...)...); err != nil {
		return a, 0, err
	}
	if !p.lost.Load() {
		return a, 0, fmt.Errorf("no reply was lost, and the answer is %q", a.text)
	}
	look := append(append([]any{}, command...), 0)
	if command[0] != "CL.THROTTLE" {
		look = []any{"RL.PEEK", command[1], command[2]}
	}
	n, err := remaining(ctx, at, look...)
	return a, int64(m.limit) - n, err
}
