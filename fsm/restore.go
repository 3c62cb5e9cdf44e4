package fsm

import (
	"errors"
	"fmt"
	"io"

	"limitd/snapshot"
)

// Restore replaces the state by that of a snapshot of the local store. The new
// table is built beside the old one, which serves readers until then; a snapshot
// being written goes on with the old one and is not merged back.
func (f *FSM) Restore(rc io.ReadCloser) error {
	if err := f.Halted(); err != nil {
		return fmt.Errorf("no restore into a halted machine: %w", err)
	}
	r, ok := snapshot.FromReader(rc)
	if !ok {
		return errors.New("restore: not a snapshot of the local store")
	}
	m := r.Meta()
	if applied := f.Applied(); m.Index < applied {
		return fmt.Errorf("restore: the snapshot's index %d is below %d, which is applied", m.Index, applied)
	} else if m.Index > applied || applied == 0 {
		if err := f.load(r, m); err != nil {
			return fmt.Errorf("restore: snapshot at index %d: %w", m.Index, err)
		}
		if f.trace != nil {
			f.traceRestored()
		}
	}
	if f.onApplied != nil {
		f.onApplied(m.Index)
	}
	return nil
}

func (f *FSM) load(r *snapshot.Reader, m snapshot.Meta) error {
	t := newTable(m.ClusterID)
	err := r.EachExpired(func(x snapshot.Record) error {
		ns, key, ident, err := snapshot.SplitName(x.Name)
		if err != nil {
			return err
		}
		t.load(ns, key, ident, x.State, x.Expiry)
		return nil
	}, t.touch) // what expired is in the file and not in the table: the next snapshot removes it
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.state = State{Header: m.Header, Applied: m.Index}
	f.points.startAt(m.Index, m.Chain)
	f.running = nil
	f.logBytes.Store(0)
	f.table.Store(t)
	f.mu.Unlock()
	f.now.Store(m.T)
	f.applied.Store(m.Index)
	return nil
}
