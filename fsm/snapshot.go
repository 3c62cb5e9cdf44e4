package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"limitd/mutant"
	"limitd/snapshot"
)

// stateSnapshot is the state at the moment of Snapshot, as far as it changed since the one before.
type stateSnapshot struct {
	fsm      *FSM
	table    *Table
	header   snapshot.Header
	records  []snapshot.Record // namespaces that were cleared; from Persist on also what the table gave
	logBytes int64
	begun    time.Time

	sink    *snapshot.Sink // once Commit was called
	written bool
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
	t := f.Table()
	f.running = &stateSnapshot{fsm: f, table: t, header: f.state.Header, records: t.wiped.take(), logBytes: f.logBytes.Swap(0), begun: time.Now()}
	if mutant.On("last-not-in-snapshot") {
		f.running.header.Last = 0
	}
	t.begin()
	return f.running, nil
}

// Persist writes the snapshot to a sink of the snapshot store, the only kind there is.
func (s *stateSnapshot) Persist(sink raft.SnapshotSink) error {
	k, ok := sink.(*snapshot.Sink)
	if !ok {
		return fmt.Errorf("a snapshot goes to the snapshot store, not to %T", sink)
	}
	s.gather()
	s.sink = k
	if err := k.Commit(s.header, s.records); err != nil {
		return err
	}
	s.written = true
	return nil
}

// gather completes the records and puts them in name order. The name of a
// cleared namespace comes before those of its records.
func (s *stateSnapshot) gather() {
	s.records = s.table.gather(s.records)
	slices.SortFunc(s.records, func(a, b snapshot.Record) int { return bytes.Compare(a.Name, b.Name) })
}

// Release ends the snapshot. What was not written goes to the next one, unless a
// Restore came between: the table it is put back into is then nobody's any more.
func (s *stateSnapshot) Release() {
	if !s.written {
		s.table.retract()
		s.table.putBack(s.records)
	}
	s.records = nil
	if s.sink != nil {
		s.sink.Release()
	}
	f := s.fsm
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running == s {
		f.running = nil
		f.saves.Took, f.saves.Failed = time.Since(s.begun), !s.written
		if s.written {
			f.saves.Saved = time.Now()
		}
		if !s.written {
			f.logBytes.Add(s.logBytes)
		}
	}
}
