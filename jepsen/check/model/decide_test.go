package model

import (
	"maps"
	"testing"

	"limitd/trace"
)

// memory is a view that keeps what calls leave behind.
type memory struct {
	states  map[Record]State
	charges map[ID]*Charge
}

func (m memory) State(r Record) State { return m.states[r] }
func (m memory) Charge(id ID) *Charge { return m.charges[id] }

func (m memory) Kinds(ns uint8, key string) (all []Identity) {
	for r := range m.states {
		if r.NS == ns && r.Key == key && r.Kind != ofThrottle {
			all = append(all, r.Kind)
		}
	}
	return all
}

func (m memory) call(t *testing.T, now int64, c trace.Call) Decided {
	t.Helper()
	d, err := Decide(&c, now, 100, m)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(m.states, d.Change.States)
	maps.Copy(m.charges, d.Change.Charges)
	return d
}

// log is a take of cost units from log:5/10ms on a key.
func log(key string, cost int64, id string) trace.Call {
	return trace.Call{Op: "take", Key: key, Algorithm: Log, Burst: 5, Limit: "log:5/10ms", Cost: cost, ID: id}
}

func several(id string, costs ...int64) trace.Call {
	c := trace.Call{Op: "takeall", Key: "a", ID: id}
	for i, cost := range costs {
		c.Parts = append(c.Parts, trace.Part{Key: []string{"a", "b", "c"}[i], Limit: []string{"log:5/10ms", "fixed:3/10ms", "leaky:1/10ms"}[i], Cost: cost})
	}
	return c
}

func TestSeveralLimitsByHand(t *testing.T) {
	m := memory{map[Record]State{}, map[ID]*Charge{}}
	used := func(c trace.Call, key string, limit string, at int64) int64 {
		l, _ := ParseLimit(limit)
		a := l.Peek(m.states[Record{0, key, l.Identity}], at, 0)
		return l.Burst - a.Remaining
	}
	d := m.call(t, 100e6+1, several("", 2, 2, 1))
	if c := d.Call; !c.Allowed || c.N != -1 || c.Retry != 0 || c.Parts[0].Remaining != 3 || c.Parts[1].Reset != 10e6-1 || c.Parts[2].Reset != 10e6 {
		t.Errorf("%+v", c)
	}
	d = m.call(t, 101e6, several("", 2, 2, 1))
	if c := d.Call; c.Allowed || c.N != 2 || c.Retry != 9e6+1 || c.Parts[0].Remaining != 3 || !c.Parts[0].Allowed || c.Parts[1].Retry != 9e6 || d.Change.States != nil {
		t.Errorf("%+v", c)
	}
	if n := used(d.Call, "a", "log:5/10ms", 101e6); n != 2 {
		t.Errorf("%d are used by a call that was denied", n)
	}
	if d = m.call(t, 101e6, several("", 9, 2, 1)); d.Call.Retry != Never || d.Call.N != 0 {
		t.Errorf("what can never pass: %+v", d.Call)
	}
	if d = m.call(t, 101e6, trace.Call{Op: "ttl", Key: "b"}); d.Call.N != 9e6 {
		t.Errorf("%+v", d.Call)
	}
	if d = m.call(t, 101e6, trace.Call{Op: "reset", Key: "a", More: []string{"a", "x"}}); d.Call.N != 1 {
		t.Errorf("%+v", d.Call)
	}
	if d = m.call(t, 101e6, trace.Call{Op: "exists", Key: "a", More: []string{"b"}}); d.Call.N != 1 {
		t.Errorf("%+v", d.Call)
	}
}

func TestIDsByHand(t *testing.T) {
	m := memory{map[Record]State{}, map[ID]*Charge{}}
	now := int64(1_000_000_000)
	first := m.call(t, now, log("k", 3, "id"))
	again := m.call(t, now+50, log("k", 3, "id"))
	if !again.Call.Repeated || again.At != now || again.Call.Remaining != first.Call.Remaining || again.Change.States != nil {
		t.Errorf("again: %+v", again)
	}
	for what, c := range map[string]trace.Call{"another cost": log("k", 2, "id"), "another key": log("j", 3, "id"), "several": several("id", 1, 1)} {
		if d := m.call(t, now+50, c); d.Call.Status != "err" || d.Change.States != nil {
			t.Errorf("%s: %+v", what, d)
		}
	}
	if d := m.call(t, now+60, log("k", -2, "other")); d.Call.Status != "err" {
		t.Errorf("an ID that nobody used: %+v", d)
	}
	if d := m.call(t, now+60, log("k", -2, "id")); d.Given != 2 || d.Call.Repeated || d.Call.Remaining != 4 {
		t.Errorf("given back: %+v", d)
	}
	if d := m.call(t, now+60, log("k", -2, "id")); d.Given != 0 || !d.Call.Repeated || d.Change.States != nil {
		t.Errorf("given back again: %+v", d)
	}
	if d := m.call(t, now+100, log("k", 3, "id")); d.Call.Repeated || d.Call.Remaining != 1 {
		t.Errorf("when it is forgotten: %+v", d)
	}
}
