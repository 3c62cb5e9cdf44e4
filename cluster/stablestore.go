package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// stableStore is raft's memory of terms and votes, in the file of the log: each
// value with a checksum, and a stop at the first failure.
type stableStore struct {
	file logFile
	path string
	disk *disk

	marks *marks // nil: nobody asks
}

var _ raft.StableStore = (*stableStore)(nil)

// stableKeys are the keys that raft uses.
var stableKeys = []string{"CurrentTerm", "LastVoteTerm", "LastVoteCand"}

// check reads every value that raft may ask for, and the node's own.
func (s *stableStore) check() error {
	for _, k := range append([]string{incarnationKey}, stableKeys...) {
		v, err := s.read([]byte(k))
		switch {
		case errors.Is(err, errNoValue):
		case err != nil:
			return damagedLog(s.path, err)
		case s.marks != nil:
			s.marks.valueStored(k, v)
		}
	}
	return nil
}

func (s *stableStore) read(key []byte) ([]byte, error) {
	sealed, err := s.file.Get(key)
	if err != nil {
		return nil, err // raft compares the text of "not found"
	}
	return openValue(key, sealed)
}

// Set implements raft.StableStore.
func (s *stableStore) Set(key, value []byte) error {
	err := s.disk.write(func() error { return s.file.Set(key, sealValue(key, value)) })
	if err != nil {
		s.disk.failAndExit(fmt.Errorf("write %s to %s: %w", key, s.path, err))
	}
	if s.marks != nil {
		s.marks.valueStored(string(key), value)
	}
	return nil
}

// Get implements raft.StableStore.
func (s *stableStore) Get(key []byte) ([]byte, error) {
	err := s.disk.failed()
	if err == nil {
		var v []byte
		if v, err = s.read(key); err == nil || errors.Is(err, errNoValue) {
			return v, err
		}
	}
	s.disk.failAndExit(damagedLog(s.path, err))
	return nil, err
}

// SetUint64 implements raft.StableStore.
func (s *stableStore) SetUint64(key []byte, v uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, v))
}

// GetUint64 implements raft.StableStore.
func (s *stableStore) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		s.disk.failAndExit(damagedLog(s.path, fmt.Errorf("value of %s: %d bytes, not 8", key, len(b))))
	}
	return binary.BigEndian.Uint64(b), nil
}
