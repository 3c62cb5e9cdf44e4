package cluster

import (
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// brokenBolt is a bolt file that fails as told.
type brokenBolt struct {
	logFile
	deletes int // how many truncations succeed; 0: all

	mu   sync.Mutex
	fail error         // of every write
	hold chan struct{} // writes wait until it is closed
}

func (b *brokenBolt) failWrites(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// holdWrites makes writes wait until release is called.
func (b *brokenBolt) holdWrites() (release func()) {
	hold := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold = hold
	return sync.OnceFunc(func() {
		b.mu.Lock()
		b.hold = nil
		b.mu.Unlock()
		close(hold)
	})
}

func (b *brokenBolt) write() error {
	b.mu.Lock()
	hold, err := b.hold, b.fail
	b.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return err
}

// Readers wait for a write that hangs: bbolt holds the lock that they need too.
func (b *brokenBolt) read() {
	b.mu.Lock()
	hold := b.hold
	b.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

func (b *brokenBolt) FirstIndex() (uint64, error) { b.read(); return b.logFile.FirstIndex() }
func (b *brokenBolt) LastIndex() (uint64, error)  { b.read(); return b.logFile.LastIndex() }

func (b *brokenBolt) GetLog(i uint64, l *raft.Log) error {
	b.read()
	return b.logFile.GetLog(i, l)
}

func (b *brokenBolt) Get(k []byte) ([]byte, error) { b.read(); return b.logFile.Get(k) }

func (b *brokenBolt) StoreLog(l *raft.Log) error { return b.StoreLogs([]*raft.Log{l}) }

func (b *brokenBolt) StoreLogs(logs []*raft.Log) error {
	if err := b.write(); err != nil {
		return err
	}
	return b.logFile.StoreLogs(logs)
}

func (b *brokenBolt) Set(k, v []byte) error {
	if err := b.write(); err != nil {
		return err
	}
	return b.logFile.Set(k, v)
}

func (b *brokenBolt) DeleteRange(lo, hi uint64) error {
	if b.deletes == 1 {
		b.deletes = -1
	} else if b.deletes < 0 {
		return errors.New("interrupted")
	}
	return b.logFile.DeleteRange(lo, hi)
}
