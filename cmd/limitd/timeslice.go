package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// timeslice is what a node's threads ask the system's scheduler for, the shortest there is.
//
// A thread keeps its processor for a slice, 1.4 ms on two processors, although another was woken that has waited longer; and how soon a
// woken thread is let in goes by its own slice. A node works for some microseconds at a time. With short slices its threads are let in
// sooner, before programs with ordinary ones. It gets no more of the processors for it. bench/NOTES.md has what it was measured to do.
const timeslice = 100 * time.Microsecond

// shortenTimeslices asks for short slices for all threads of the process; those that they start inherit them. A thread
// whose policy was changed is left as it is. Linux before 6.12 accepts the wish and does nothing.
func shortenTimeslices() error {
	done := map[int]bool{}
	for more := true; more; { // a thread that was not asked for yet may have started another
		more = false
		threads, err := threadIDs()
		if err != nil {
			return err
		}
		for _, tid := range threads {
			if done[tid] {
				continue
			}
			done[tid], more = true, true
			if err := shortenTimeslice(tid); err != nil && !errors.Is(err, unix.ESRCH) {
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

func shortenTimeslice(tid int) error {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return err
	}
	attr.Runtime = uint64(timeslice)
	return unix.SchedSetAttr(tid, attr, 0)
}
