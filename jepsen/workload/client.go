package workload

import (
	"fmt"
	"strconv"

	"limitd/jepsen/history"
)

// client is one connection and the processes that ask through it.
type client struct {
	w       *Workload
	ns      int   // namespace that it asks in
	process []int // one for each call of its longest pipeline
	conn    *conn // nil: none
	node    string
	asked   string // the node that was asked last
}

// ask sends calls to a node in one write, and records them and what becomes of them.
func (c *client) ask(node string, calls []call) []outcome {
	all := make([]outcome, len(calls))
	c.asked = node
	event := func(i int, t history.Type) history.Event {
		return history.Event{Type: t, Process: c.process[i], F: calls[i].op.F, Tag: calls[i].tag, Node: node, NS: c.ns, Key: calls[i].key.Name}
	}
	for i := range calls {
		e := event(i, history.Invoke)
		e.Cmd = calls[i].cmd
		c.w.c.Recorder.Event(e)
	}
	tell := func(i int, o outcome) {
		all[i] = o
		e := event(i, o.Type)
		e.Reply = o.reply
		if o.err != nil {
			e.Error = o.err.Error()
		}
		c.w.c.Recorder.Event(e)
		if o.Type == history.Info {
			c.process[i] += c.w.processes
		}
	}
	if err := c.connect(node); err != nil {
		for i := range calls {
			tell(i, outcome{Type: history.Fail, err: fmt.Errorf("not connected: %w", err)})
		}
		return all
	}
	if !c.conn.exchange(c.w.c.Patience, calls, tell) {
		c.drop()
	}
	return all
}

// connect makes sure that the connection is to that node, in the client's namespace.
func (c *client) connect(node string) error {
	if c.conn != nil && c.node == node {
		return nil
	}
	c.drop()
	nc, err := c.w.c.Dial(node, impatient)
	if err != nil {
		return err
	}
	c.conn, c.node = newConn(nc), node
	if c.ns == 0 {
		return nil
	}
	if _, err = c.conn.do(c.w.c.Patience, "SELECT", strconv.Itoa(c.ns)); err != nil {
		c.drop()
	}
	return err
}

// drop ends the connection.
func (c *client) drop() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
