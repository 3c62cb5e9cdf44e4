package main

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// All threads ask for short slices, and those that are started after it as well.
func TestShortTimeslices(t *testing.T) {
	if attr, err := unix.SchedGetAttr(0, 0); err != nil || attr.Runtime == 0 {
		t.Skipf("this kernel has no slices of a thread's own (Linux 6.12 has): %+v, %v", attr, err)
	}
	if err := shortenTimeslices(); err != nil {
		t.Fatal(err)
	}
	threads, err := threadIDs()
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, tid := range threads {
		checkTimeslice(t, tid)
	}
	release := make(chan struct{})
	defer close(release)
	for range 30 { // each keeps a thread for itself, and so most of them a new one
		checked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			checkTimeslice(t, 0)
			close(checked)
			<-release
		}()
		<-checked
	}
}

func checkTimeslice(t *testing.T, tid int) {
	t.Helper()
	if attr, err := unix.SchedGetAttr(tid, 0); err != nil || time.Duration(attr.Runtime) != timeslice {
		t.Errorf("thread %d: %+v, %v", tid, attr, err)
	}
}

// A thread that somebody gave another policy keeps it.
func TestTimesliceOfAnotherPolicyStays(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_BATCH}, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetAttr(0, was, 0)
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := shortenTimeslices(); err != nil {
		t.Fatal(err)
	}
	if attr, err := unix.SchedGetAttr(0, 0); err != nil || *attr != *before {
		t.Errorf("%+v, before %+v: %v", attr, before, err)
	}
}
