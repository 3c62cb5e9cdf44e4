package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"limitd/snapshot"
)

// stateSnapshot is the state at the moment of Snapshot, as far as it changed since the one before.
type stateSnapshot struct {
	fsm      *FSM
	table    *Table
	header   snapshot.Header
	wiped    []snapshot.Record
	logBytes int64

	sink     *snapshot.Sink    // once Commit was called
	gathered []snapshot.Record // once gather was
	written  bool
}

// Snapshot begins a snapshot; it does not wait for anything, and copies nothing.
// One at a time: raft releases each before it asks for the next.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.Halted(); err != nil {
		return nil, fmt.Errorf("no snapshot of a halted machine: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running != nil {
		return nil, errors.New("another snapshot is being written")
	}
	s := &stateSnapshot{fsm: f, table: f.Table(), header: f.state.Header, wiped: f.Table().wiped.take(), logBytes: f.logBytes.Swap(0)}
	s.table.begin()
	f.running = s
	return s, nil
}

// Persist writes the snapshot to a sink of the snapshot store, the only kind there is.
func (s *stateSnapshot) Persist(sink raft.SnapshotSink) error {
	k, ok := sink.(*snapshot.Sink)
	if !ok {
		return fmt.Errorf("a snapshot goes to the snapshot store, not to %T", sink)
	}
	s.gathered = s.table.gather()
	s.sink = k
	if err := k.Commit(s.header, s.records()); err != nil {
		return err
	}
	s.written = true
	return nil
}

// records returns what changed, in name order. The name of a cleared namespace
// comes before those of its records.
func (s *stateSnapshot) records() []snapshot.Record {
	all := slices.Concat(s.wiped, s.gathered)
	slices.SortFunc(all, func(a, b snapshot.Record) int { return bytes.Compare(a.Name, b.Name) })
	return all
}

// Release ends the snapshot. What was not written goes to the next one, unless a
// Restore came between: the table it is merged into is then nobody's any more.
func (s *stateSnapshot) Release() {
	if !s.written {
		s.table.wiped.putBack(s.wiped)
		s.table.retract()
		s.table.remark(s.gathered)
	}
	s.gathered = nil
	if s.sink != nil {
		s.sink.Release()
	}
	f := s.fsm
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running == s {
		f.running = nil
		if !s.written {
			f.logBytes.Add(s.logBytes)
		}
	}
}
