package snapshot

import (
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"
)

// Reader is one snapshot of the file, fixed at the moment of Open whatever is committed or installed later. It is what Store.Open
// returns, and what a state machine finds again with FromReader behind the wrappers that raft puts around it. Either Each or Read is
// used on one Reader. One that is idle for a minute or open for half an hour gives up with ErrExpired, because the file cannot reuse
// pages that a reader might see.
type Reader struct {
	s    *Store
	f    *file
	meta fileMeta
	size int64 // of the stream

	mu sync.Mutex // against the watch
	tx *bolt.Tx
	walk
	expiry [8]byte // the state of a record whose state is its expiry

	use      int // unused, streaming or walking
	enc      encoder
	buf, out []byte // out is what is left of buf
	err      error

	opened, used time.Time
	timer        *time.Timer
}

const (
	unused = iota
	streaming
	walking
)

// FromReader finds the Reader behind raft's wrappers.
func FromReader(rc io.ReadCloser) (*Reader, bool) {
	for {
		switch x := rc.(type) {
		case *Reader:
			return x, true
		case raft.ReadCloserWrapper:
			rc = x.WrappedReadCloser()
		default:
			return nil, false
		}
	}
}

// Meta is the meta data of the snapshot that is read.
func (r *Reader) Meta() Meta {
	m := r.meta.Meta
	m.Configuration = m.Configuration.Clone()
	return m
}

// Each calls fn for each record that is alive at T, straight from the file and checked, in name order. A damaged record is an error
// that wraps ErrDamaged and names the key, so what fn was given counts only once Each has returned nil. Slices are valid during fn.
func (r *Reader) Each(fn func(Record) error) error { return r.EachExpired(fn, nil) }

// EachExpired is Each, and calls expired with the name of each record that is in the file but not alive at T. A state machine that
// loads the file notes those as deletions, so that a later snapshot removes them.
func (r *Reader) EachExpired(fn func(Record) error, expired func(name []byte) error) error {
	if err := r.enter(walking); err != nil {
		return err
	}
	defer r.mu.Unlock()
	for {
		e, err := r.next()
		if e.name == nil || err != nil {
			return r.done(err)
		}
		switch {
		case e.expiry > r.meta.T:
			rec := Record{Name: e.name, State: e.state, Expiry: e.expiry}
			if e.flags == stateIsExpiry {
				binary.LittleEndian.PutUint64(r.expiry[:], uint64(e.expiry))
				rec.State = r.expiry[:]
			}
			err = fn(rec)
		case expired != nil:
			err = expired(e.name)
		}
		if err != nil {
			return r.done(err)
		}
	}
}

// Read gives the next bytes of the canonical stream.
func (r *Reader) Read(p []byte) (int, error) {
	if err := r.enter(streaming); err != nil {
		return 0, err
	}
	defer r.mu.Unlock()
	if len(r.out) == 0 {
		if err := r.fill(); err != nil {
			return 0, r.done(err)
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// fill encodes the next part of the stream into buf, or returns io.EOF.
func (r *Reader) fill() error {
	if r.enc.ended {
		return io.EOF
	}
	buf := r.buf[:0]
	if !r.enc.begun {
		buf = r.enc.head(buf, r.meta.Header)
	}
	for len(buf) < 64<<10 && !r.enc.ended {
		e, err := r.next()
		switch {
		case err != nil:
			return err
		case e.name == nil:
			buf = r.enc.trailer(buf)
		case e.expiry > r.meta.T:
			buf = r.enc.value(buf, e.name, e.value)
		}
	}
	r.buf, r.out = buf, buf
	return nil
}
