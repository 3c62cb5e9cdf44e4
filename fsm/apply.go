package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"limitd/mutant"
)

// maxStep is how far an entry may move cluster time. A clock that claims more is broken.
const maxStep = 400 * 24 * time.Hour

// Apply applies a committed entry and returns a [Result]. All of the entry takes
// effect, or nothing of it.
//
// The entry is void, on every node alike, if it was decided before the last
// batch that took effect, in another term than the one it was appended in (the
// proposer lost the lead and won it again in between), if it is more than 400
// days ahead of cluster time, if it sets a cluster id that is set, or if it has a
// splice that is impossible (see [Effect]).
//
// It halts the machine if it cannot be read or was decided on a state that this
// node should have and has not.
func (f *FSM) Apply(l *raft.Log) any {
	r := f.applyEntry(l)
	if f.trace != nil {
		f.traceApplied(l, r.Outcome)
	}
	if f.onApplied != nil {
		f.onApplied(l.Index)
	}
	return r
}

func (f *FSM) applyEntry(l *raft.Log) Result {
	if err := f.Halted(); err != nil {
		return Result{Unknown, err}
	}
	e, err := parseEntry(l.Data)
	switch {
	case errors.Is(err, ErrVersion):
		return f.halt("entry %d of the log: %w", l.Index, err)
	case err != nil:
		return f.halt("entry %d of the log: %w; %w", l.Index, err, ErrUntrusted)
	}
	f.logBytes.Add(int64(len(l.Data)))
	next := f.State()
	if e.Base > next.Last {
		return f.halt("entry %d of the log was decided after entry %d took effect, which this node has not seen (its last is %d); %w", l.Index, e.Base, next.Last, ErrUntrusted)
	}
	stale := (e.Base < next.Last || e.Term != l.Term) && !mutant.On("void-batch-applied")
	if stale || tooFarAhead(e.At, next.T) || !next.set(&e) {
		return f.void(l.Index)
	}
	next.Last, next.Chain, next.T = l.Index, link(next.Chain, l.Index, l.Data), max(next.T, e.At)
	if mutant.On("local-clock-in-apply") {
		next.T = max(next.T, time.Now().UnixNano())
	}
	if mutant.On("no-clamp-of-t") {
		next.T = e.At
	}

	t := f.Table()
	if next.ClusterID != f.state.ClusterID && t.empty() {
		t = newTable(next.ClusterID) // hashes are keyed from the cluster id; a table in use gets its key at the next start
	}
	f.batch.load(t, &e)
	if !f.batch.possible(t, &e, next.T) {
		return f.void(l.Index)
	}
	f.table.Store(t)
	f.batch.apply(t, &e, next.T)
	f.advance(l.Index, next)
	return Result{Outcome: Applied}
}

func tooFarAhead(at, now int64) bool {
	return now != 0 && at > now && uint64(at)-uint64(now) > uint64(maxStep)
}

// set takes over the cluster id and offset that the entry sets; false if the id is set already.
func (s *State) set(e *entry) bool {
	if !e.settings {
		return true
	}
	for d := e.effects(0); len(d.rest) > 0; {
		d.mustNext()
		switch x := &d.effect; x.Op {
		case OpSetCluster:
			if s.ClusterID != [16]byte{} {
				return false
			}
			copy(s.ClusterID[:], x.State)
			s.Generation = binary.LittleEndian.Uint64(x.State[16:])
		case OpSetOffset:
			s.Offset = int64(binary.LittleEndian.Uint64(x.State))
		}
	}
	return true
}

// StoreConfiguration notes that a configuration entry was applied. raft keeps the configuration itself.
func (f *FSM) StoreConfiguration(index uint64, _ raft.Configuration) {
	if f.Halted() == nil {
		f.void(index)
	}
	if f.onApplied != nil {
		f.onApplied(index)
	}
}

// advance publishes the state after the entry at index.
func (f *FSM) advance(index uint64, next State) {
	next.Applied = index
	f.mu.Lock()
	f.points.pass(index-1, f.state.Chain)
	f.points.pass(index, next.Chain)
	f.state = next
	f.mu.Unlock()
	f.now.Store(next.T)
	f.applied.Store(index)
}

// void notes an entry, or another index, that changes nothing.
func (f *FSM) void(index uint64) Result {
	f.advance(index, State{Header: f.state.Header})
	return Result{Outcome: Void}
}

func (f *FSM) halt(format string, args ...any) Result {
	err := fmt.Errorf(format, args...)
	f.halted.Store(&err)
	return Result{Unknown, err}
}
