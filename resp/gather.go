package resp

import (
	"github.com/tidwall/redcon"

	"limitd/algo"
	"limitd/limiter"
)

// Replies leave in the order of the commands. While no call is gathered a reply
// is rendered behind the others. From the first gathered call on, the replies to
// come are a list: calls, which are rendered once answered, and literals.

// form is how a reply is to be rendered.
type form uint8

const (
	literal  form = iota // rendered already
	unheard              // not at all
	verdict              // as CL.THROTTLE
	number               // as an integer
	kind                 // as TYPE
	seconds              // ns as seconds
	millis               // ns as milliseconds
	okay                 // OK
	taken                // as RL.TAKE
	takenAll             // as RL.TAKEALL
	listed               // as RL.LIST
)

// append renders the number of a call that is not a decision. The forms are the
// same in RESP2 and RESP3.
func (f form) append(dst []byte, n int64) []byte {
	switch f {
	case kind:
		if n > 0 {
			return append(dst, "+limit\r\n"...)
		}
		return append(dst, "+none\r\n"...)
	case okay:
		return redcon.AppendOK(dst)
	case seconds:
		if n > 0 {
			n = algo.CeilSeconds(n)
		}
	case millis:
		if n > 0 {
			n = ceilMS(n)
		}
	}
	return redcon.AppendInt(dst, n)
}

// pending is a reply that is to come, in the order of the commands.
type pending struct {
	form form
	cmd  uint16 // of a call: the index of its command
	end  int    // of a literal: where it ends in literals; it begins where the one before ends
}

// call gathers a call of the limiter in the present namespace, to be answered in
// the form r.
func (c *client) call(r form) *limiter.Call {
	if c.mute || c.skip {
		r = unheard
	}
	c.s.pending = append(c.s.pending, pending{form: r, cmd: uint16(c.stats.command.index)})
	call := c.s.chunk.Add()
	call.NS = uint8(c.db.Load())
	call.Tag, c.tag = c.tag, 0
	return call
}

// begin returns where a reply is to be appended: behind the replies, or, while
// calls before it are unanswered, beside them. The result goes to reply.
func (c *client) begin() []byte {
	if len(c.s.pending) == 0 {
		return c.s.out
	}
	return c.s.literals
}

// reply takes over dst, which is what begin returned with a reply appended.
func (c *client) reply(dst []byte) {
	at := &c.s.literals
	if len(c.s.pending) == 0 {
		at = &c.s.out
	}
	if start := len(*at); c.mute || c.skip {
		if !c.aloud {
			dst = dst[:start]
		}
		c.aloud = false
	} else if len(dst) > start && dst[start] == '-' {
		c.erred(c.stats.command, dst[start:])
	}
	*at = dst
	if at == &c.s.literals {
		c.s.pending = append(c.s.pending, pending{form: literal, end: len(dst)})
	}
}

func (c *client) fail(text string) {
	c.reply(redcon.AppendError(c.begin(), text))
}

// settle lets the gathered calls be answered and brings all replies into order.
func (c *client) settle() {
	s := c.s
	if len(s.pending) == 0 {
		return
	}
	if len(s.chunk.Calls) > 0 {
		c.turn.end()
		c.srv.limiter.Do(&s.chunk)
	}
	out, calls, from := s.out, s.chunk.Calls, 0
	for _, p := range s.pending {
		if p.form == literal {
			out = append(out, s.literals[from:p.end]...)
			from = p.end
			continue
		}
		call := &calls[0]
		calls = calls[1:]
		switch {
		case p.form == unheard:
		case call.Status != limiter.OK:
			start := len(out)
			out = redcon.AppendError(out, call.Status.Error())
			c.erred(c.srv.table.all[p.cmd], out[start:])
		case p.form == verdict:
			out = appendThrottle(out, &call.Verdict)
		case p.form == taken:
			out = appendTaken(out, call)
		case p.form == takenAll:
			out = appendTakenAll(out, call)
		case p.form == listed:
			out = appendListed(out, call)
		default:
			out = p.form.append(out, call.N)
		}
	}
	s.out = out
	s.settled()
}

// flush counts what was done and writes the replies. After an error the client
// is beyond help.
func (c *client) flush() error {
	c.stats.bytesOut = uint64(len(c.s.out))
	c.count()
	if len(c.s.out) == 0 {
		return nil
	}
	_, err := c.out.Write(c.s.out)
	c.s.out = c.s.out[:0]
	if err != nil {
		c.quit = err
	}
	return err
}
