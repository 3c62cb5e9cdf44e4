package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Local snapshots, installs, readers, receipts and saves all at once: each reader sees one whole state, and the last one is the newest.
func TestEverythingAtOnce(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	s.steps.written = 4096
	state := func(index uint64) (records []Record) { // what the file holds at an index, whoever wrote it
		for i := range 100 {
			records = append(records, rec(fmt.Sprintf("key %03d", i), fmt.Sprintf("state at %d", index), 1<<60))
		}
		return records
	}
	header := func(index uint64) Header { return Header{Last: index, T: int64(index)} }
	commit(t, s, 1, 1, state(1)...)

	var next atomic.Uint64
	next.Store(1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	run := func(what string, f func() error) {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					if n == 0 {
						t.Error("never: ", what)
					}
					return
				default:
				}
				if err := f(); err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
			}
		})
	}
	run("commit", func() error {
		index := next.Add(1)
		k, err := s.Create(1, index, 1, testConf, 1, nil)
		if err != nil {
			return err
		}
		defer k.(*Sink).Release()
		if err := k.(*Sink).Commit(header(index), state(index)); err != nil && !errors.Is(err, ErrSuperseded) {
			return err
		}
		return nil
	})
	run("large commit", func() error {
		index := next.Add(1)
		k, err := s.Create(1, index, 1, testConf, 1, nil)
		if err != nil {
			return err
		}
		defer k.(*Sink).Release()
		if err := k.(*Sink).Add(state(index)[:70]); err != nil {
			return err
		}
		if err := k.(*Sink).Commit(header(index), state(index)[70:]); err != nil && !errors.Is(err, ErrSuperseded) {
			return err
		}
		return nil
	})
	run("install", func() error {
		index := next.Add(3)
		k, err := s.Create(1, index, 1, testConf, 1, nil)
		if err != nil {
			return err
		}
		if _, err := k.Write(write(t, header(index), state(index)...)); errors.Is(err, ErrStale) {
			return k.Cancel() // a commit was quicker: refused while it was being sent
		} else if err != nil {
			return errors.Join(err, k.Cancel())
		}
		if err := k.Close(); err != nil && !errors.Is(err, ErrStale) {
			return err
		}
		return nil
	})
	whole := func(h Header, records []Record, err error) error {
		if err != nil {
			return err
		}
		if got, want := write(t, h, records...), write(t, header(h.Last), state(h.Last)...); !bytes.Equal(got, want) {
			return fmt.Errorf("a mixed state at %d", h.Last)
		}
		return nil
	}
	for range 2 {
		run("stream", func() error {
			l, err := s.List()
			if err != nil {
				return err
			}
			m, rc, err := s.Open(l[0].ID)
			if errors.Is(err, ErrNoSnapshot) { // replaced in between
				return nil
			}
			if err != nil {
				return err
			}
			defer rc.Close()
			b, err := io.ReadAll(rc)
			if err != nil || int64(len(b)) != m.Size {
				return fmt.Errorf("%d of %d bytes: %w", len(b), m.Size, err)
			}
			return whole(read(bytes.NewReader(b)))
		})
	}
	run("save", func() error { _, err := s.SaveTo(t.TempDir() + "/saved"); return err })
	run("receipt", func() error { return s.SaveReceipt(Receipt{At: 1}) })
	time.Sleep(time.Second) // how long they all go on; nothing waits for it
	close(stop)
	wg.Wait()

	m, _ := s.Meta()
	expect(t, contents(t, s), state(m.Index)...)
	eventually(t, "no reader and no old file is left", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.readers) == 0 && s.cur.refs == 1
	})
}
