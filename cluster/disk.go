package cluster

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// disk is what the log and the stable store share: whether a write is under way
// and since when, how long writes take, and the first failure, after which
// neither store is used again. On Linux a second fsync can report success for
// pages that the first one failed to write, and a write that was given up may
// still land later, so there is nothing to retry.
type disk struct {
	clock  Clock
	onFail func(error) // called once

	writing  atomic.Int64 // boot time at which the write under way began, or idle
	deleting atomic.Int64 // the same for a truncation of the log
	latency  histogram

	once sync.Once
	err  atomic.Pointer[error]
}

const idle = math.MaxInt64

func newDisk(c Clock, onFail func(error)) *disk {
	d := &disk{clock: c, onFail: onFail}
	d.writing.Store(idle)
	d.deleting.Store(idle)
	return d
}

// failed is the failure that ended the use of the stores.
func (d *disk) failed() error {
	if p := d.err.Load(); p != nil {
		return *p
	}
	return nil
}

// fail ends the use of the stores and returns err, and what to do about it.
func (d *disk) fail(err error) error {
	err = withRemedy(err)
	d.once.Do(func() {
		d.err.Store(&err)
		d.onFail(err)
	})
	return err
}

// withRemedy adds what to do to an error that a disk gave.
func withRemedy(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w: free space there, then start this node again", err)
	case errors.Is(err, unix.EIO), errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: the disk has failed; see what the kernel says of it (dmesg), and start this node again when the disk is sound", err)
	}
	return err
}

// failAndExit is fail for the calls whose error makes raft panic. The goroutine
// of raft that met the failure ends here, quietly and with its deferred answers
// (which are refusals); the node has been told to stop.
func (d *disk) failAndExit(err error) {
	d.fail(err)
	runtime.Goexit()
}

// write runs one write of the log or the stable store.
func (d *disk) write(f func() error) error {
	if err := d.failed(); err != nil {
		return err
	}
	begun := d.clock.Boot()
	d.writing.Store(begun)
	err := f()
	d.writing.Store(idle)
	d.latency.observe(time.Duration(d.clock.Boot() - begun))
	return err
}

// truncate runs one step of a truncation.
func (d *disk) truncate(f func() error) error {
	if err := d.failed(); err != nil {
		return err
	}
	d.deleting.Store(d.clock.Boot())
	defer d.deleting.Store(idle)
	return f()
}

// stalled is for how long the write under way has been waiting, 0 if there is
// none.
func (d *disk) stalled(now int64) time.Duration {
	return time.Duration(max(now-d.writing.Load(), 0))
}

// histogram counts durations in buckets of powers of two of a microsecond.
type histogram struct {
	n [40]atomic.Uint64
}

func (h *histogram) observe(d time.Duration) {
	i := bits.Len64(uint64(max(d.Microseconds(), 0)))
	h.n[min(i, len(h.n)-1)].Add(1)
}

// quantile is an upper bound on the q-th quantile; n is how many were counted.
func (h *histogram) quantile(q float64) (bound time.Duration, n uint64) {
	for i := range h.n {
		n += h.n[i].Load()
	}
	want := uint64(math.Ceil(q * float64(n)))
	var seen uint64
	for i := range h.n {
		if seen += h.n[i].Load(); seen >= want && n > 0 {
			return time.Duration(1<<i) * time.Microsecond, n
		}
	}
	return 0, n
}
