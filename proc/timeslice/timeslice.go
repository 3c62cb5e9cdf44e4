// Package timeslice asks the system's scheduler for short time slices, for programs that work for some
// microseconds at a time and are late when they wait behind others.
//
// A thread keeps its processor for a slice, 1.4 ms on two processors, although another was woken that has waited
// longer; and how soon a woken thread is let in goes by the length of its own slice. Threads with short slices are
// let in sooner, before those with ordinary ones. They get no more of the processors for it.
package timeslice

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Shortest is the shortest slice that Linux gives, and the one that is asked for.
const Shortest = 100 * time.Microsecond

// Shorten asks for the shortest slices for all threads of the process; those that they start inherit them, and so
// do their children. A thread whose policy was changed is left as it is. Linux before 6.12 accepts the wish and does
// nothing. An error is the system's: it forbids it.
func Shorten() error { return set(Shortest, func(int) bool { return true }) }

// ShortenOthers is Shorten for a program that starts others, which ought to have ordinary slices: it spares the calling
// thread, and with it what that thread starts. The calling goroutine must be locked to its thread
// ([runtime.LockOSThread]): Go then starts its own threads from another.
func ShortenOthers() error {
	self := unix.Gettid()
	return set(Shortest, func(tid int) bool { return tid != self })
}

// set asks for slices of d, 0 for ordinary ones, for the threads that are wanted.
func set(d time.Duration, wanted func(tid int) bool) error {
	done := map[int]bool{}
	for more := true; more; { // a thread that was not asked for yet may have started another
		more = false
		threads, err := threadIDs()
		if err != nil {
			return err
		}
		for _, tid := range threads {
			if done[tid] || !wanted(tid) {
				continue
			}
			done[tid], more = true, true
			if err := setThread(tid, d); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("thread %d: %w", tid, err)
			}
		}
	}
	return nil
}

// threadIDs are those of this process.
func threadIDs() ([]int, error) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(entries))
	for i, e := range entries {
		if ids[i], err = strconv.Atoi(e.Name()); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func setThread(tid int, d time.Duration) error {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return err
	}
	attr.Runtime = uint64(d)
	return unix.SchedSetAttr(tid, attr, 0)
}
