package fsm

import (
	"errors"
	"fmt"
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
	records  []snapshot.Record // namespaces that were cleared; from Persist on also what the table gave and the sink has not yet
	logBytes int64
	begun    time.Time

	sink    *snapshot.Sink // from Persist on
	written bool
	over    bool // the store is closed: no other snapshot comes, and nothing needs to be given back
}

// A portion of a snapshot is about so much. What changed more goes to the sink in
// several, so that memory holds one of them.
const (
	portionRecords = 128 << 10
	portionBytes   = 32 << 20 // of names and states
)

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
	s.sink = k
	err := s.gather()
	if err == nil {
		err = k.Commit(s.header, s.records)
	}
	s.written, s.over = err == nil, errors.Is(err, snapshot.ErrClosed)
	return err
}

// gather takes what changed out of the table, and leaves the last portion of it.
func (s *stateSnapshot) gather() error {
	counted, size := 0, 0
	err := s.table.gather(&s.records, func() error {
		for ; counted < len(s.records); counted++ {
			size += len(s.records[counted].Name) + len(s.records[counted].State)
		}
		if counted < s.fsm.portion && size < portionBytes {
			s.sink.Rest()
			return nil
		}
		s.sort()
		if err := s.sink.Add(s.records); err != nil {
			return err
		}
		clear(s.records)
		s.records, counted, size = s.records[:0], 0, 0
		return nil
	})
	s.sort()
	return err
}

// sort puts the portion in name order. The name of a cleared namespace comes before
// those of its records.
func (s *stateSnapshot) sort() { s.sink.Sort(s.records) }

// Release ends the snapshot. What was not written goes to the next one, unless a
// Restore came between: the table it is put back into is then nobody's any more.
func (s *stateSnapshot) Release() {
	if !s.written && !s.over {
		s.giveBack()
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

// giveBack returns to the table what was not written. If that cannot be read any
// more, this table does not know what the file lacks, and the machine halts.
func (s *stateSnapshot) giveBack() {
	s.table.retract()
	for i := range s.records {
		if err := s.table.putBack(s.records[i].Name); err != nil {
			panic("fsm: " + err.Error()) // gather made the name
		}
	}
	if s.sink == nil {
		return
	}
	if err := s.sink.Added(s.table.putBack); err != nil {
		s.fsm.halt("what a snapshot had taken and did not write cannot be read again, start this node again: %w", err)
	}
}
