package workload

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"limitd/jepsen/history"
)

// call is an operation to send.
type call struct {
	op  *Operation
	key Key
	cmd []string
	tag uint64
	id  string // empty: none
}

// outcome is what became of a call.
type outcome struct {
	history.Type
	reply any   // OK
	err   error // Fail, Info
}

// exchange sends the calls in one write, each behind RL.TRACE and its tag, and tells
// what becomes of each of them as soon as that is known, in their order. It says
// whether the connection may be used further: not after an info.
//
// A node that did not get a command to its end cannot have charged for it: such a call
// is a fail, all others of a connection that breaks are infos.
func (c *conn) exchange(patience time.Duration, calls []call, tell func(i int, o outcome)) (usable bool) {
	broke := func(i int, err error) bool {
		for ; i < len(calls); i++ {
			tell(i, outcome{Type: history.Info, err: err})
		}
		return false
	}
	var b []byte
	ends := make([]int, len(calls))
	for i, k := range calls {
		b = appendCommand(b, "RL.TRACE", strconv.FormatUint(k.tag, 10))
		b = appendCommand(b, k.cmd...)
		ends[i] = len(b)
	}
	sent, err := 0, c.SetDeadline(time.Now().Add(patience))
	if err == nil {
		sent, err = c.Write(b)
	}
	if err != nil {
		for i := range calls {
			o := outcome{Type: history.Info, err: fmt.Errorf("sent, and then: %w", err)}
			if sent < ends[i] {
				o = outcome{Type: history.Fail, err: fmt.Errorf("not sent whole: %w", err)}
			}
			tell(i, o)
		}
		return false
	}
	usable = true
	for i, k := range calls {
		tagged, err := c.reply(maxDepth)
		var refused replyError
		if err != nil && !errors.As(err, &refused) {
			return broke(i, fmt.Errorf("no reply: %w", err))
		}
		reply, err := c.reply(maxDepth)
		var said replyError
		if err != nil && !errors.As(err, &said) {
			return broke(i, fmt.Errorf("no reply: %w", err))
		}
		o := outcome{Type: history.OK, reply: reply}
		switch {
		case err != nil:
			o = outcome{Type: k.op.classify(said), err: said}
		case refused != "" || tagged != "OK":
			// It was answered and cannot be found in a trace: what it did is left open.
			o = outcome{Type: history.Info, err: fmt.Errorf("RL.TRACE was answered %v%v, the call %v", tagged, refused, reply)}
		}
		usable = usable && o.Type != history.Info
		tell(i, o)
	}
	return usable
}
