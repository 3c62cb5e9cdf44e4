package load

import (
	"context"
	"runtime"

	"golang.org/x/sys/unix"
)

// metronome has Go look at its timers every 100 µs (50, and the
// system's slack of 50) until ctx is done. A process with
// nothing else to do sleeps in epoll_wait(2), in whole milliseconds: a command that was due
// in 20 µs left 1 ms late, together with all others of that millisecond, and the faster a
// server answered the more often.
func metronome(ctx context.Context) {
	for ctx.Err() == nil {
		unix.Nanosleep(&unix.Timespec{Nsec: 50_000}, nil)
		runtime.Gosched()
	}
}
