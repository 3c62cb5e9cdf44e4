package limiter

import (
	"encoding/hex"
	"reflect"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/trace"
)

// kept is a trace in memory.
type kept struct {
	mu   sync.Mutex
	rows []trace.Row
}

func (k *kept) write(r trace.Row) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rows = append(k.rows, r)
}

func (k *kept) take() []trace.Row {
	k.mu.Lock()
	defer k.mu.Unlock()
	rows := k.rows
	k.rows = nil
	return rows
}

// TestATraceJoinsACallWithItsEntry: the round before its entry is applied, the
// entry with the same digest, then what became of the round.
func TestATraceJoinsACallWithItsEntry(t *testing.T) {
	f, k := newFake(), &kept{}
	f.f.Trace(k.write)
	l := f.limiter(t, func(c *Config) { c.Trace = k.write })
	limit := throttle(t, 2, 1, 60)
	var c Chunk
	*c.Add() = Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 2, Tag: 7}
	*c.Add() = Call{Op: Reset, Key: []byte("a"), More: [][]byte{[]byte("\xff")}}
	l.Do(&c)
	rows := k.take()
	if len(rows) != 3 || rows[0].Kind != trace.Round || rows[1].Kind != trace.Applied || rows[2].Kind != trace.Outcome {
		t.Fatalf("%+v", rows)
	}
	round, applied, outcome := rows[0], rows[1], rows[2]
	want := []trace.Call{
		{Tag: 7, Op: "take", Key: "k", Algorithm: 1, Interval: 60e9, Burst: 3, Cost: 2, Status: "ok", Allowed: true, Remaining: 1, Reset: 120e9},
		{Op: "reset", Key: "a", More: []string{"base64:/w=="}, Status: "ok"},
	}
	if !reflect.DeepEqual(round.Calls, want) {
		t.Errorf("calls %+v\nwant %+v", round.Calls, want)
	}
	if round.Digest == "" || round.Digest != applied.Digest || round.At != testStart || applied.At != testStart || applied.Outcome != "applied" {
		t.Errorf("round %+v\napplied %+v", round, applied)
	}
	if outcome.Outcome != "applied" || outcome.Index != applied.Index || outcome.Round != round.Round || outcome.Term != round.Term {
		t.Errorf("outcome %+v of round %+v at index %d", outcome, round, applied.Index)
	}
	full := testStart + 120e9 // the state too, little endian
	effects := []trace.Effect{{Op: "replace", Key: "k", Identity: "01", State: hex.EncodeToString(tatBytes(full)), Expiry: full}}
	if !reflect.DeepEqual(applied.Effects, effects) {
		t.Errorf("effects %+v, want %+v", applied.Effects, effects)
	}

	c.Reset()
	*c.Add() = Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 2, Tag: 8}
	*c.Add() = Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 2}
	l.Do(&c)
	rows = k.take()
	if len(rows) != 1 || rows[0].Kind != trace.Local || len(rows[0].Calls) != 1 || rows[0].Calls[0].Tag != 8 || rows[0].Index != applied.Index || !rows[0].Leading {
		t.Errorf("a local denial left %+v", rows)
	}

	f.touch.Store(false)
	f.commit = func(func() uint64) (uint64, fsm.Outcome) { return 0, fsm.Unknown }
	ask(l, Call{Op: Take, Key: []byte("k"), Limit: limit, Cost: 1, Tag: 9})
	rows = k.take()
	if len(rows) != 2 || rows[0].Digest == "" || rows[1].Outcome != "unknown" {
		t.Errorf("a round in doubt left %+v", rows)
	}
}

func TestAVoidEntryIsTracedAsVoid(t *testing.T) {
	f, k := newFake(), &kept{}
	f.f.Trace(k.write)
	f.f.Apply(&raft.Log{Index: 1, Term: 2, Data: fsm.AppendEntry(nil, fsm.Turn{Term: 1, At: 5}, nil)})
	rows := k.take()
	if len(rows) != 1 || rows[0].Outcome != "void" || rows[0].Index != 1 || rows[0].Last != 0 || rows[0].Term != 2 {
		t.Errorf("%+v", rows)
	}
}

// A tag goes with its call to the leader; without one the frame is what it ever was.
func TestATagGoesWithItsCall(t *testing.T) {
	calls := frameCalls(t)
	for i := range calls {
		calls[i].Tag = 1<<64 - 1 - uint64(i%2)
	}
	back, err := readRequest(nil, appendRequest(nil, calls), &Limits{})
	if err != nil || !reflect.DeepEqual(back, calls) {
		t.Fatalf("%v\n got %+v\nwant %+v", err, back, calls)
	}
}
