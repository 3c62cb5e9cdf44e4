package fsm

import (
	"encoding/binary"
	"math"
)

// What the offline recovery of a cluster needs beside Restore and Apply.

// SetGeneration sets the generation of the cluster id. In a running cluster only
// batches change state; this is for a state that becomes the beginning of the
// next generation, on raft's goroutine or without raft.
func (f *FSM) SetGeneration(generation uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Generation = generation
}

// Count sweeps once through the whole table and returns the number of records left.
func (f *FSM) Count() (n int) {
	t := f.Table()
	f.Sweep(math.MaxInt)
	for ns := range t.records {
		n += t.Len(uint8(ns))
	}
	return n
}

// EntryBase reads the base of an entry without decoding it: the index of the batch
// that its proposer had applied last, which was committed, therefore. false if it
// is no entry of ours.
func EntryBase(data []byte) (base uint64, ok bool) {
	if _, ok := EntryTime(data); !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(data[offBase:]), true
}
