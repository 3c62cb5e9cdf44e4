package timeslice

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread that starts other programs keeps ordinary slices, and so do they; all other threads, and those that are started
// after it, have short ones.
func TestShortenOthers(t *testing.T) {
	needSlices(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self := unix.Gettid()
	ordinary := slice(t, self)
	if err := ShortenOthers(); err != nil {
		t.Fatal(err)
	}
	checkThreads(t, func(tid int) time.Duration {
		if tid == self {
			return ordinary
		}
		return Shortest
	})
	if child, err := sliceOfChild(); err != nil || child != ordinary {
		t.Errorf("the slices of a child are %v (%v), want %v", child, err, ordinary)
	}
}

// All threads ask for short slices, and those that are started after it as well.
func TestShorten(t *testing.T) {
	needSlices(t)
	if err := Shorten(); err != nil {
		t.Fatal(err)
	}
	checkThreads(t, func(int) time.Duration { return Shortest })
}

// checkThreads looks at all threads, and at some new ones.
func checkThreads(t *testing.T, want func(tid int) time.Duration) {
	t.Helper()
	check := func(tid int) {
		t.Helper()
		if got := slice(t, tid); got != want(tid) {
			t.Errorf("thread %d has slices of %v, want %v", tid, got, want(tid))
		}
	}
	threads, err := threadIDs()
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, tid := range threads {
		check(tid)
	}
	release := make(chan struct{})
	defer close(release)
	for range 30 { // each keeps a thread for itself, and so most of them a new one
		checked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			check(unix.Gettid())
			close(checked)
			<-release
		}()
		<-checked
	}
}

// needSlices skips the test where threads have no slices of their own; when it is over they have ordinary ones again.
func needSlices(t *testing.T) {
	if slice(t, unix.Gettid()) == 0 {
		t.Skip("this kernel has no slices of a thread's own (Linux 6.12 has)")
	}
	t.Cleanup(func() {
		if err := set(0, func(int) bool { return true }); err != nil {
			t.Error(err)
		}
	})
}

// slice is that of a thread of this process.
func slice(t *testing.T, tid int) time.Duration {
	t.Helper()
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		t.Errorf("thread %d: %v", tid, err)
		return 0
	}
	return time.Duration(attr.Runtime)
}

// sliceOfChild starts a program, from the thread it is called on, and asks the system for its slices.
func sliceOfChild() (time.Duration, error) {
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	attr, err := unix.SchedGetAttr(child.Process.Pid, 0)
	in.Close()
	child.Wait()
	if err != nil {
		return 0, err
	}
	return time.Duration(attr.Runtime), nil
}

// A thread that somebody gave another policy keeps it.
func TestAnotherPolicyStays(t *testing.T) {
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
	defer set(0, func(int) bool { return true })
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := Shorten(); err != nil {
		t.Fatal(err)
	}
	if attr, err := unix.SchedGetAttr(0, 0); err != nil || *attr != *before {
		t.Errorf("%+v, before %+v: %v", attr, before, err)
	}
}
