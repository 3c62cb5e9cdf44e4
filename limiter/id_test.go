package limiter

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"limitd/algo"
	"limitd/fsm"
)

func withID(c Call, id string) Call {
	c.ID = []byte(id)
	return c
}

func one(t testing.TB, key, limit string, cost int64) Call {
	return Call{Op: Take, Key: []byte(key), Limit: expr(t, limit), Cost: cost}
}

func TestACallIsChargedOnceUnderItsID(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	for _, call := range []Call{one(t, "k", "log:9/1h", 2), all("all", t, "all", "9/1h", "b", "leaky:9/1h,queue=8")} {
		call = withID(call, "id of "+string(call.Key))
		first := ask(l, call)
		if first.Status != OK || !first.Verdict.Allowed || first.Repeated {
			t.Fatalf("%v %+v", first.Status, first)
		}
		before := f.f.State().Chain
		f.clock.Add(1e9)
		call.Parts = append([]Part(nil), call.Parts...)
		again := ask(l, call)
		if !again.Repeated {
			t.Error("it was decided again")
		}
		again.Repeated = false
		if !sameAnswer(&again, &first) || again.At != first.At {
			t.Errorf("again:\n got %+v\nwant %+v", again, first)
		}
		if f.f.State().Chain != before {
			t.Error("the repeated call wrote something")
		}
	}
	if n := used(l, "k", expr(t, "log:9/1h")); n != 2 {
		t.Errorf("%d units are used", n)
	}
	for name, other := range map[string]Call{
		"another cost":  one(t, "k", "log:9/1h", 3),
		"another key":   one(t, "j", "log:9/1h", 2),
		"another limit": one(t, "k", "log:10/1h", 2),
		"several":       all("k", t, "k", "log:9/1h"),
	} {
		if c := ask(l, withID(other, "id of k")); c.Status != IDTaken {
			t.Errorf("%s: %v %+v", name, c.Status, c.Verdict)
		}
	}
	other := withID(one(t, "j", "log:9/1h", 2), "id of k")
	other.NS = 3
	if c := ask(l, other); c.Status != OK {
		t.Errorf("in another namespace: %v", c.Status)
	}
	f.clock.Add(int64(time.Minute))
	if c := ask(l, withID(one(t, "k", "log:9/1h", 2), "id of k")); c.Repeated || c.Verdict.Remaining != 5 {
		t.Errorf("after limits.id_ttl: %+v", c)
	}
}

// All answers of one chunk are decided in one round, before anything is committed.
func TestACallThatIsRepeatedInItsRoundIsChargedOnce(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	f.commit = func(apply func() uint64) (uint64, fsm.Outcome) { apply(); return 0, fsm.Unknown }
	var c Chunk
	for range 3 {
		*c.Add() = withID(one(t, "k", "9/1h", 1), "x")
	}
	l.Do(&c)
	for i := range c.Calls {
		if s := c.Calls[i].Status; s != InDoubt {
			t.Errorf("call %d of an entry in doubt: %v", i, s)
		}
	}
	f.commit = nil
	if c := ask(l, withID(one(t, "k", "9/1h", 1), "x")); !c.Repeated || c.Verdict.Remaining != 8 {
		t.Errorf("when it was in doubt and had been charged: %+v", c)
	}
}

func TestWhatWasDeniedUnderAnIDIsDecidedAfresh(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	ask(l, one(t, "k", "1/1m", 1))
	if c := ask(l, withID(one(t, "k", "1/1m", 1), "x")); c.Verdict.Allowed || c.Status != OK {
		t.Fatalf("%+v", c)
	}
	f.clock.Add(int64(time.Minute))
	if c := ask(l, withID(one(t, "k", "1/1m", 1), "x")); !c.Verdict.Allowed || c.Repeated {
		t.Fatalf("%+v", c)
	}
}

func TestIDsAreNoKeys(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	ask(l, withID(one(t, "k", "9/1h", 1), "x"))
	if c := ask(l, Call{Op: Exists, Key: []byte("x")}); c.N != 0 {
		t.Error("EXISTS finds the ID")
	}
	if n := l.Size(0); n != 1 {
		t.Errorf("DBSIZE is %d", n)
	}
	if keys, _ := l.Scan(0, 0, 100); len(keys) != 1 {
		t.Errorf("SCAN finds %q", keys)
	}
	ask(l, Call{Op: Reset, Key: []byte("k"), More: [][]byte{[]byte("x")}})
	if c := ask(l, withID(one(t, "k", "9/1h", 1), "x")); !c.Repeated {
		t.Error("a reset of the key forgets the ID")
	}
	ask(l, Call{Op: Flush})
	if c := ask(l, withID(one(t, "k", "9/1h", 1), "x")); c.Repeated {
		t.Error("a flush keeps the ID")
	}
}

func TestOnlySoManyIDsAreRemembered(t *testing.T) {
	f := newFake()
	l := f.limiter(t, func(c *Config) { c.MaxIDs = 2 })
	var c Chunk
	for _, id := range []string{"a", "b", "c", "a"} {
		*c.Add() = withID(one(t, "k", "9/1h", 1), id)
	}
	l.Do(&c)
	for i, want := range []Status{OK, OK, IDsFull, OK} {
		if c.Calls[i].Status != want {
			t.Errorf("call %d: %v, want %v", i, c.Calls[i].Status, want)
		}
	}
	if n := used(l, "k", expr(t, "9/1h")); n != int64(800*time.Second) {
		t.Errorf("%d ns of debt", n)
	}
	if c := ask(l, one(t, "k", "9/1h", 1)); c.Status != OK {
		t.Errorf("a call without an ID: %v", c.Status)
	}
}

// Each step is a call or a refund under an ID, and what is left of the limit after it.
func TestARefundByIDGivesBackItsOwnChargeOnce(t *testing.T) {
	type step struct {
		after time.Duration
		call  string // "+n id" charges, "-n id" refunds
		n     int64
		id    string
		left  int64
	}
	for _, c := range []struct {
		limit string
		steps []step
	}{
		{"log:10/1m", []step{
			{0, "charge", 3, "a", 7},
			{10 * time.Second, "charge", 4, "b", 3},
			{0, "refund", 2, "a", 5},
			{0, "refund", 2, "a", 5},         // once
			{51 * time.Second, "", 0, "", 6}, // the unit of a that was not given back is over, b is not
			{0, "refund", 9, "b", 10},        // at most what it was
		}},
		{"sliding:10/1m", []step{
			{0, "charge", 4, "a", 6},
			{time.Minute, "charge", 1, "b", 5}, // a is in the window before
			{0, "refund", 4, "a", 9},
			{0, "refund", 1, "b", 10},
		}},
		{"fixed:10/1m", []step{
			{0, "charge", 4, "a", 6},
			{time.Minute, "charge", 1, "b", 9},
			{0, "refund", 4, "a", 9}, // its window is over
			{0, "refund", 1, "b", 10},
		}},
		{"10/1m", []step{
			{0, "charge", 5, "a", 5},
			{30 * time.Second, "charge", 1, "b", 9}, // a is paid back
			{0, "refund", 5, "a", 9},
			{0, "charge", 2, "c", 7},
			{0, "refund", 2, "c", 9},
		}},
	} {
		t.Run(c.limit, func(t *testing.T) {
			f := newFake()
			f.clock.Store(testStart - testStart%int64(time.Hour))
			l := f.limiter(t, func(c *Config) { c.IDTTL = time.Hour })
			for i, s := range c.steps {
				f.clock.Add(int64(s.after))
				switch s.call {
				case "charge":
					ask(l, withID(one(t, "k", c.limit, s.n), s.id))
				case "refund":
					if got := ask(l, withID(one(t, "k", c.limit, -s.n), s.id)); got.Status != OK || !got.Verdict.Allowed || got.Verdict.Remaining != s.left {
						t.Errorf("step %d: %v %+v", i, got.Status, got.Verdict)
					}
				}
				peek := one(t, "k", c.limit, 1)
				peek.Peek = true
				if got := ask(l, peek); got.Verdict.Remaining != s.left {
					t.Errorf("step %d: %d are left, want %d", i, got.Verdict.Remaining, s.left)
				}
			}
		})
	}
}

// What others were charged after a reset is given back by a refund of a charge from before
// it, but of a log, which knows each charge by its time (docs/promises.md, P1).
func TestARefundOfAChargeFromBeforeAReset(t *testing.T) {
	for limit, left := range map[string]int64{
		"9/1h": 0, "token:9/1h": 0, "leaky:9/1h,queue=8": 0, "fixed:9/1h": 0, "fixed:9/year": 0, "sliding:9/1h": 0, "log:9/1h": 2,
	} {
		f := newFake()
		l := f.limiter(t, nil)
		ask(l, withID(one(t, "k", limit, 3), "x"))
		f.clock.Add(1)
		ask(l, Call{Op: Reset, Key: []byte("k")})
		ask(l, one(t, "k", limit, 2)) // somebody else
		c := ask(l, withID(one(t, "k", limit, -3), "x"))
		if n := used(l, "k", expr(t, limit)); c.Status != OK || c.Repeated || n != left {
			t.Errorf("%s: %v, %d units are used, want %d", limit, c.Status, n, left)
		}
	}
}

func TestARefundNeedsAnIDThatIsKnown(t *testing.T) {
	f := newFake()
	l := f.limiter(t, nil)
	ask(l, withID(all("a", t, "a", "9/1h", "b", "fixed:9/1h"), "x"))
	for name, c := range map[string]Call{
		"an unknown ID": withID(one(t, "a", "9/1h", -1), "y"),
		"another key":   withID(one(t, "c", "9/1h", -1), "x"),
		"another limit": withID(one(t, "a", "9/2h", -1), "x"),
	} {
		if got := ask(l, c); got.Status != IDUnknown {
			t.Errorf("%s: %v %+v", name, got.Status, got.Verdict)
		}
	}
	if c := ask(l, withID(one(t, "b", "fixed:9/1h", -5), "x")); c.Status != OK || c.Verdict.Remaining != 9 {
		t.Errorf("the second of two limits: %v %+v", c.Status, c.Verdict)
	}
	f.clock.Add(int64(time.Minute))
	if c := ask(l, withID(one(t, "a", "9/1h", -1), "x")); c.Status != IDUnknown {
		t.Errorf("after limits.id_ttl: %v", c.Status)
	}
}

func FuzzReadCharge(f *testing.F) {
	f.Add(appendCharge(nil, &charge{at: 7, parts: []charged{{place: 1, cost: 2, until: 3, verdict: algo.Verdict{Allowed: true, Limit: 4}}, {refunded: true, verdict: algo.Verdict{Allowed: true}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		ch, ok := readCharge(b)
		if !ok {
			return
		}
		again, ok := readCharge(appendCharge(nil, &ch))
		if !ok || !reflect.DeepEqual(again, ch) {
			t.Fatalf("%+v became %+v", ch, again)
		}
	})
}

func TestChargeBytes(t *testing.T) {
	ch := charge{digest: [16]byte{1, 15: 2}, at: 64, parts: []charged{{place: 0x0102030405060708, cost: 1, until: 100, refunded: true, verdict: algo.Verdict{Allowed: true, Limit: 10, Remaining: 9, ResetAfter: 36}}}}
	want := append([]byte{1, 1, 15: 0, 16: 2}, 0x80, 1, 1, 8, 7, 6, 5, 4, 3, 2, 1, 2, 0xc8, 1, 1, 20, 18, 72, 0)
	if got := appendCharge(nil, &ch); !bytes.Equal(got, want) {
		t.Errorf("version 1 changed:\n got %x\nwant %x", got, want)
	}
}
