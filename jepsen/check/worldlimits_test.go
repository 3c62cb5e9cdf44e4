package check

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"limitd/algo"
	"limitd/trace"
)

// The limits of the world's commands: it decides them with package algo, which the
// checkers do not know.

// records are those of limit expressions and of IDs, by namespace, key and identity.
type records map[recordName]rec

type recordName struct {
	ns              uint8
	key, identifier string // identity in hex
}

type rec struct {
	state  string
	expiry int64
	times  int // it was written
}

// remembered is what the world's records of IDs hold.
type remembered struct {
	Call  trace.Call // as it was answered
	At    int64
	Until []int64
	Back  []bool // given back
}

const idIdentity = "ff"

// limits of the world's keys: more than one on some.
var worldLimits = map[string][]string{
	"lim:g": {"24/2s,burst=9"},
	"lim:t": {"token:20/3s"},
	"lim:q": {"leaky:9/1s,queue=6"},
	"lim:f": {"fixed:20/2s", "log:30/4s"},
	"lim:s": {"sliding:16/1500ms"},
	"lim:l": {"log:12/1s", "60/4s,burst=40"},
	"lim:c": {"fixed:14/day,hour=8", "fixed:25/week,tz=Asia/Dhaka,start=fri,hour=14"},
}

func parsed(expr string) algo.Limit {
	l, err := algo.Parse(expr)
	if err != nil {
		panic(err)
	}
	return l
}

func (t records) at(n recordName, now int64) []byte {
	if r, ok := t[n]; ok && r.expiry > now {
		return []byte(r.state)
	}
	return nil
}

func (t records) keep(n recordName, old []byte, e algo.Effect, now int64) {
	switch {
	case e.Op == algo.None:
	case e.Expiry <= now:
		delete(t, n)
	case e.Op == algo.Splice:
		t[n] = rec{string(old[e.Drop:len(old)-e.Cut]) + string(e.State), e.Expiry, t[n].times + 1}
	default:
		t[n] = rec{string(e.State), e.Expiry, t[n].times + 1}
	}
}

// of are the records of a key.
func (t records) of(key string) (all []recordName) {
	for n := range t {
		if n.ns == 0 && n.key == key {
			all = append(all, n)
		}
	}
	return all
}

func nameOf(key string, l algo.Limit) recordName {
	return recordName{0, key, hex.EncodeToString(l.Ident())}
}

// one decides on one limit of a key.
func (w *world) one(t records, key string, l algo.Limit, cost, now int64, peek bool) (algo.Verdict, func()) {
	n := nameOf(key, l)
	state := t.at(n, now)
	if w.bug == "counter-one-more" && l.Interval == 0 && cost > 0 {
		l.Burst++
	}
	date := now
	if w.bug == "calendar-early" && l.Dated() {
		date += 400 * ms
	}
	v, e := l.Decide(state, date, 0, cost, nil)
	if w.bug == "counter-one-more" && l.Interval == 0 && cost > 0 {
		l.Burst--
	}
	if v.Limit = l.Burst; peek && v.Allowed && cost > 0 {
		asks, _ := l.Decide(state, now, 0, 0, nil)
		v.Remaining, v.ResetAfter = asks.Remaining, asks.ResetAfter
	}
	v.Remaining = min(v.Remaining, l.Burst)
	return v, func() { t.keep(n, state, e, now) }
}

// answerLimit answers RL.TAKE and its kin.
func (w *world) answerLimit(t records, c *trace.Call, now int64) {
	l := parsed(c.Limit)
	if c.ID != "" && c.Cost < 0 {
		w.refundID(t, c, l, now)
		return
	}
	if c.ID != "" && w.repeats(t, c, now) {
		return
	}
	v, keep := w.one(t, c.Key, l, c.Cost, now, c.Peek)
	c.Allowed, c.Remaining, c.Retry, c.Reset, c.Delay = v.Allowed, v.Remaining, v.RetryAfter, v.ResetAfter, v.Delay
	if c.Peek || !v.Allowed || c.Cost == 0 {
		return
	}
	keep()
	if c.ID != "" {
		w.remember(t, c, now, []int64{now + c.Reset})
	}
}

// answerAll answers RL.TAKEALL.
func (w *world) answerAll(t records, c *trace.Call, now int64) {
	c.Parts = slices.Clone(c.Parts)
	if c.ID != "" && w.repeats(t, c, now) {
		return
	}
	c.Allowed = true
	var keeps []func()
	until := make([]int64, len(c.Parts))
	for i := range c.Parts {
		p := &c.Parts[i]
		v, keep := w.one(t, p.Key, parsed(p.Limit), p.Cost, now, c.Peek)
		p.Allowed, p.Remaining, p.Retry, p.Reset, p.Delay = v.Allowed, v.Remaining, v.RetryAfter, v.ResetAfter, v.Delay
		c.Allowed = c.Allowed && v.Allowed
		keeps, until[i] = append(keeps, keep), now+v.ResetAfter
	}
	for i := range c.Parts {
		switch p := &c.Parts[i]; {
		case c.Allowed && !c.Peek:
			keeps[i]()
		case c.Allowed:
		case p.Allowed:
			v, keep := w.one(t, p.Key, parsed(p.Limit), p.Cost, now, true)
			p.Remaining, p.Reset, p.Delay = v.Remaining, v.ResetAfter, 0
			if w.bug == "takeall-partial" && !slices.ContainsFunc(c.Parts[:i], func(q trace.Part) bool { return !q.Allowed }) && !c.Peek {
				keep()
			}
		}
	}
	c.N, c.Retry = -1, 0
	for i, p := range c.Parts {
		longer := p.Retry > c.Retry || p.Retry == -1
		if w.bug == "takeall-first-wait" {
			longer = false
		}
		if !p.Allowed && (c.N < 0 || c.Retry != -1 && longer) {
			c.N, c.Retry = int64(i), p.Retry
		}
	}
	if c.ID != "" && c.Allowed {
		w.remember(t, c, now, until)
	}
}

func (w *world) known(t records, id string, now int64) (m remembered, ok bool) {
	state := t.at(recordName{idSpace, id, idIdentity}, now)
	if state == nil {
		return m, false
	}
	return m, json.Unmarshal(state, &m) == nil
}

func (w *world) keepID(t records, id string, m remembered) {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	n := recordName{idSpace, id, idIdentity}
	t[n] = rec{string(b), m.At + w.run.IDTTLNS, t[n].times + 1}
}

func (w *world) remember(t records, c *trace.Call, now int64, until []int64) {
	if w.bug == "id-forgotten" && w.r.IntN(4) == 0 {
		return
	}
	w.keepID(t, c.ID, remembered{*c, now, until, make([]bool, len(until))})
}

func (w *world) repeats(t records, c *trace.Call, now int64) bool {
	m, ok := w.known(t, c.ID, now)
	if !ok || w.bug == "id-not-kept" {
		return false
	}
	if askedText(c) != askedText(&m.Call) {
		if w.bug == "id-of-another" {
			return false
		}
		c.Status = "err"
		return true
	}
	tag := c.Tag
	*c = m.Call
	c.Tag, c.Repeated = tag, true
	w.made[tag] = m.At
	if w.bug == "repeat-differs" {
		c.Reset = max(0, c.Reset-1)
		if len(c.Parts) > 0 {
			c.Parts[0].Remaining++
		}
	}
	return true
}

// askedText is what tells calls under an ID apart.
func askedText(c *trace.Call) string {
	s := []string{c.Op, c.Key, c.Limit, fmt.Sprint(c.Cost)}
	for _, p := range c.Parts {
		s = append(s, p.Key, p.Limit, fmt.Sprint(p.Cost))
	}
	return strings.Join(s, " ")
}

func (w *world) refundID(t records, c *trace.Call, l algo.Limit, now int64) {
	m, ok := w.known(t, c.ID, now)
	which, units := -1, int64(0)
	if ok && m.Call.Op == "take" && m.Call.Key == c.Key && slices.Equal(parsed(m.Call.Limit).Ident(), l.Ident()) {
		which, units = 0, m.Call.Cost
	}
	for i, p := range m.Call.Parts {
		if ok && p.Key == c.Key && slices.Equal(parsed(p.Limit).Ident(), l.Ident()) {
			which, units = i, p.Cost
		}
	}
	if which < 0 {
		c.Status = "err"
		return
	}
	n := nameOf(c.Key, l)
	state := t.at(n, now)
	units = min(units, -c.Cost)
	back := m.Back[which] && w.bug != "refund-id-twice"
	v, _ := l.Decide(state, now, 0, 0, nil)
	v.Allowed, v.RetryAfter, v.Delay = true, 0, 0
	c.Repeated = back
	if !back && m.Until[which] > now && units > 0 {
		var e algo.Effect
		v, e = l.Refund(state, now, 0, units, m.At, nil)
		t.keep(n, state, e, now)
		m.Back[which] = true
		w.keepID(t, c.ID, m)
	}
	c.Allowed, c.Remaining, c.Retry, c.Reset, c.Delay = v.Allowed, v.Remaining, v.RetryAfter, v.ResetAfter, v.Delay
}

// list is what RL.LIST says of a key.
func (w *world) list(table map[string]int64, t records, key string, now int64) []any {
	all := []any{}
	add := func(algorithm, period string, used, expiry int64) {
		if w.bug == "list-one-more" && w.r.IntN(4) == 0 {
			used++
		}
		if expiry > now {
			all = append(all, []any{algorithm, period, used, (expiry - now + 1e6 - 1) / 1e6})
		}
	}
	if tat, ok := table[key]; ok {
		add("throttle", "", tat-now, tat)
	}
	names := t.of(key)
	slices.SortFunc(names, func(a, b recordName) int { return strings.Compare(a.identifier, b.identifier) })
	for _, n := range names {
		ident, err := hex.DecodeString(n.identifier)
		if err != nil {
			panic(err)
		}
		id, err := algo.ReadIdent(ident)
		if err != nil {
			panic(err)
		}
		add(id.Algorithm.Name(), id.String(), algo.Used(ident, []byte(t[n].state), now, 0), t[n].expiry)
	}
	return all
}

// effects are what makes of the records before those after.
func (t records) effects(before records) (all []trace.Effect) {
	for n, r := range t {
		if before[n] != r {
			all = append(all, trace.Effect{Op: "replace", NS: n.ns, Key: n.key, Identity: n.identifier, State: hex.EncodeToString([]byte(r.state)), Expiry: r.expiry})
		}
	}
	for n := range before {
		if _, ok := t[n]; !ok {
			all = append(all, trace.Effect{Op: "delete", NS: n.ns, Key: n.key, Identity: n.identifier})
		}
	}
	return all
}

// apply does what an effect does to a node.
func (n *simNode) apply(f trace.Effect) {
	b, _ := hex.DecodeString(f.State)
	name := recordName{f.NS, f.Key, f.Identity}
	switch {
	case f.Identity == "01" && f.Op == "replace":
		n.table[f.Key] = f.Expiry
	case f.Identity == "01":
		delete(n.table, f.Key)
	case f.Op == "replace":
		n.records[name] = rec{string(b), f.Expiry, 0}
	case f.Op == "delete":
		delete(n.records, name)
	}
}
