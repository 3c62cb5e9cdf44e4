package check

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
	"limitd/trace"
)

// op is an operation of a client: its invocation and what became of it.
type op struct {
	invoke, done *history.Event // done is nil if the run ended before
	typ          history.Type   // Info if there is no done
	verb         verb
	keys         []key
	call         model.Call     // throttle
	parts        []part         // limits that are named, and what is asked of each
	peek         bool           // nothing is to be charged
	id           string         // as traces have it
	reply        []int64        // integers of an OK reply, those inside arrays too; a TYPE of limit is 1
	listed       []model.Listed // what an OK reply of a list says, times in ms
	odd          string         // what is wrong with the reply
}

// verb is what an operation asks.
type verb string

const (
	throttle verb = "throttle"
	reset    verb = "reset"
	exists   verb = "exists"
	kind     verb = "type"
	seconds  verb = "ttl"
	millis   verb = "pttl"
	flush    verb = "flush"
	flushAll verb = "flushall"
	take     verb = "take"    // RL.TAKE, RL.PEEK, RL.REFUND
	takeAll  verb = "takeall" // RL.TAKEALL
	list     verb = "list"
	other    verb = ""
)

var verbs = map[string]verb{
	"CL.THROTTLE": throttle, "RL.THROTTLE": throttle, "DEL": reset, "UNLINK": reset, "RL.RESET": reset, "EXISTS": exists, "TYPE": kind,
	"TTL": seconds, "PTTL": millis, "FLUSHDB": flush, "FLUSHALL": flushAll,
	"RL.TAKE": take, "RL.PEEK": take, "RL.REFUND": take, "RL.TAKEALL": takeAll, "RL.LIST": list,
}

// from and to are the operation's time, ns since the run began.
func (o *op) from() int64 { return o.invoke.Time }

func (o *op) to() int64 {
	if o.done == nil || o.typ == history.Info {
		return math.MaxInt64
	}
	return o.done.Time
}

// events are the indexes in the history.
func (o *op) events() []int {
	if o.done == nil {
		return []int{o.invoke.Index}
	}
	return []int{o.invoke.Index, o.done.Index}
}

func (o *op) String() string {
	s := fmt.Sprintf("%s at %s", strings.Join(o.invoke.Cmd, " "), o.invoke.Node)
	switch {
	case o.done == nil:
		return s + ", never answered"
	case o.typ == history.OK:
		return fmt.Sprintf("%s, answered %v", s, o.done.Reply)
	}
	return fmt.Sprintf("%s, %s: %s", s, o.typ, o.done.Error)
}

// admitted says that the operation was answered as an admission of something.
func (o *op) admitted() bool {
	if allowed, ok := o.answered(); !ok || !allowed || o.peek {
		return false
	}
	return slices.ContainsFunc(o.parts, func(p part) bool { return p.cost > 0 })
}

// answered says what was said of the limits that it names; false: nothing was.
func (o *op) answered() (allowed, ok bool) {
	if o.typ != history.OK || o.odd != "" || len(o.reply) == 0 || len(o.parts) == 0 {
		return false, false
	}
	return (o.reply[0] == 1) != (o.verb == throttle), true // CL.THROTTLE says whether it is limited
}

// refunds says that the operation gives units back.
func (o *op) refunds() bool { return len(o.parts) == 1 && o.parts[0].cost < 0 }

// readOps joins invocations with completions.
func (e *evidence) readOps(events []history.Event) error {
	open := map[int][]*op{} // by process; the order of completions is that of the tags
	for i := range events {
		x := &events[i]
		if x.Process == history.Nemesis {
			continue
		}
		if x.Type == history.Invoke {
			o := &op{invoke: x, typ: history.Info}
			o.parse()
			e.ops = append(e.ops, o)
			open[x.Process] = append(open[x.Process], o)
			if x.Tag != 0 {
				if e.byTag[x.Tag] != nil {
					return fmt.Errorf("history: event %d has the tag %d of another operation", x.Index, x.Tag)
				}
				e.byTag[x.Tag] = o
			}
			continue
		}
		var o *op
		for j, p := range open[x.Process] {
			if p.invoke.Tag == x.Tag {
				o = p
				open[x.Process] = append(open[x.Process][:j:j], open[x.Process][j+1:]...)
				break
			}
		}
		if o == nil {
			return fmt.Errorf("history: event %d completes no operation of process %d", x.Index, x.Process)
		}
		o.done, o.typ = x, x.Type
		if x.Type == history.OK {
			o.parseReply()
		}
	}
	return nil
}

// parse reads the command. What is not understood is none of ours.
func (o *op) parse() {
	cmd := o.invoke.Cmd
	if len(cmd) == 0 {
		return
	}
	o.verb = verbs[strings.ToUpper(cmd[0])]
	ns := uint8(o.invoke.NS)
	switch {
	case o.verb == flush || o.verb == flushAll || o.verb == other:
		return
	case len(cmd) < 2 || o.verb == list && len(cmd) > 2:
		o.verb = other
		return
	case o.verb == take || o.verb == takeAll:
		o.parseLimits()
		return
	case o.verb != throttle:
		for _, k := range cmd[1:] {
			if at := (key{ns, trace.Key([]byte(k))}); !slices.Contains(o.keys, at) {
				o.keys = append(o.keys, at)
			}
		}
		return
	}
	o.keys = []key{{ns, trace.Key([]byte(cmd[1]))}}
	n := []int64{0, 0, 0, 1}
	for i, s := range cmd[2:] {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || i >= len(n) {
			o.verb = other
			return
		}
		n[i] = v
	}
	o.call = model.Call{Interval: model.Interval(n[1], n[2]), Burst: n[0] + 1, Cost: n[3]}
	if len(cmd) < 5 || o.call.Interval < 1 || o.call.Burst < 1 {
		o.verb = other
		return
	}
	l := model.ThrottleLimit(o.call.Interval, o.call.Burst)
	o.parts = []part{{record: model.Record{NS: ns, Key: o.keys[0].name, Kind: l.Identity}, limit: l, cost: o.call.Cost}}
}

// parseReply reads the reply as the command has it.
func (o *op) parseReply() {
	o.reply = integers(o.done.Reply)
	text, _ := o.done.Reply.(string)
	want := 1
	switch o.verb {
	case other:
		return
	case flush, flushAll:
		want = 0
		if text != "OK" {
			o.odd = "not OK"
		}
	case list:
		want, o.reply = 0, nil
		if o.listed, o.odd = readList(o.done.Reply); o.odd != "" {
			return
		}
	case throttle:
		want = 5
	case take:
		want = 7
	case takeAll:
		want = 4 + 5*len(o.parts)
	case kind:
		o.reply = []int64{0}
		if text == "limit" {
			o.reply[0] = 1
		} else if text != "none" {
			o.odd = "neither limit nor none"
		}
	}
	if len(o.reply) != want {
		o.odd = fmt.Sprintf("%d integers, not %d", len(o.reply), want)
	}
}

func integers(v any) []int64 {
	switch x := v.(type) {
	case int64:
		return []int64{x}
	case []any:
		var all []int64
		for _, y := range x {
			n := integers(y)
			if n == nil {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

// answer is the reply that a decision makes.
func (d *decision) answer(v verb) []int64 {
	c := d.call
	n := c.N
	switch v {
	case throttle:
		r := model.Answer{Allowed: c.Allowed, Remaining: c.Remaining, Retry: c.Retry, Reset: c.Reset}.Reply(c.Burst)
		return r[:]
	case take:
		return append([]int64{oneIf(c.Allowed), c.Burst, c.Remaining}, wait(c.Retry), wait(c.Reset), wait(c.Delay), model.Ceil(d.made, 1e6))
	case takeAll:
		all := []int64{oneIf(c.Allowed), c.N, wait(c.Retry), model.Ceil(d.made, 1e6)}
		for i, p := range c.Parts {
			if i < len(d.parts) {
				all = append(all, d.parts[i].limit.Burst, p.Remaining, wait(p.Retry), wait(p.Reset), wait(p.Delay))
			}
		}
		return all
	case kind:
		n = min(n, 1)
	case seconds:
		if n > 0 {
			n = model.Ceil(n, 1e9)
		}
	case millis:
		if n > 0 {
			n = model.Ceil(n, 1e6)
		}
	case flush, flushAll:
		return nil
	}
	return []int64{n}
}
