package load

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

// conn is one connection and what it counted.
type conn struct {
	nc net.Conn
	r  *bufio.Reader
	tally
}

func dial(ctx context.Context, addr string) (*conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{nc: nc, r: bufio.NewReaderSize(nc, 16<<10)}, nil
}

// closed sends the next commands when those before are answered.
func (c *conn) closed(p *Plan, rnd *rand.Rand) {
	c.nc.SetDeadline(c.clock.to.Add(patience))
	var b []byte
	for {
		sent := time.Now()
		if !sent.Before(c.clock.to) {
			return
		}
		b = b[:0]
		for range p.Pipeline {
			b = p.Next(b, rnd)
		}
		if _, err := c.nc.Write(b); err != nil {
			c.broke(err)
			return
		}
		for range p.Pipeline {
			if !c.receive(sent) {
				return
			}
		}
	}
}

// open sends each command when it is due, whatever is unanswered. The nth answer is the one
// to the command that was due n steps after the first.
func (c *conn) open(p *Plan, i int, began time.Time, rnd *rand.Rand) {
	each := time.Duration(float64(p.Conns) / p.Rate * 1e9)
	first := began.Add(each * time.Duration(i) / time.Duration(p.Conns)) // not all at once
	c.nc.SetWriteDeadline(c.clock.to.Add(patience))
	received := make(chan struct{})
	go func() {
		defer close(received)
		for due := first; due.Before(c.clock.to); due = due.Add(each) {
			if !c.receive(due) {
				c.nc.Close() // nobody reads any more
				return
			}
		}
	}()
	var b []byte
	for due := first; due.Before(c.clock.to); {
		now := time.Now()
		if wait := due.Sub(now); wait > 0 {
			time.Sleep(wait)
			now = time.Now()
		}
		b = b[:0]
		for ; !due.After(now) && due.Before(c.clock.to); due = due.Add(each) {
			b = p.Next(b, rnd)
		}
		if _, err := c.nc.Write(b); err != nil {
			break // the reader says what it was
		}
	}
	c.nc.SetReadDeadline(time.Now().Add(patience))
	<-received
}

// patience is how long answers are awaited after the last command was sent.
const patience = 30 * time.Second

// receive takes one reply, to a command that was due then; false if there will be none.
func (c *conn) receive(due time.Time) bool {
	first, failed, err := readReply(c.r)
	for range c.replies - 1 {
		_, failed2, err2 := readReply(c.r)
		if err == nil {
			err = err2
		}
		if failed == "" {
			failed = failed2
		}
	}
	if err != nil {
		c.broke(err)
		return false
	}
	c.count(due, time.Now(), first, failed)
	return true
}

// clock says what is measured: what was due from then to then.
type clock struct{ from, to time.Time }

// tally counts the replies of one connection.
type tally struct {
	clock
	admits                  func(int64) bool
	replies                 int
	latency                 *latencies
	allowed, denied, errors int64
	firstError              string
	codes                   map[string]int64
}

func (t *tally) count(due, now time.Time, first int64, failed string) {
	if due.Before(t.from) {
		return
	}
	switch {
	case failed != "":
		t.failed(failed)
		return
	case t.admits(first):
		t.allowed++
	default:
		t.denied++
	}
	t.latency.record(now.Sub(due))
}

func (t *tally) broke(err error) { t.failed(fmt.Sprintf("the connection broke: %v", err)) }

func (t *tally) failed(text string) {
	t.errors++
	code, _, _ := strings.Cut(text, " ")
	t.codes[code]++
	if t.firstError == "" {
		t.firstError = text
	}
}
