package cluster

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the machine's time, or a test's. Nothing else in the package asks
// for the time of the machine when a decision depends on it.
type Clock interface {
	Boot() int64    // CLOCK_BOOTTIME, ns: goes on while the machine sleeps, never jumps
	BootID() string // changes with each boot of the machine
	Wall() int64    // unix ns
}

// machineClock is the clock of this machine.
type machineClock struct{}

func (machineClock) Boot() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // Linux has had it since 2.6.39
	}
	return ts.Nano()
}

func (machineClock) BootID() string { return bootID() }

func (machineClock) Wall() int64 { return time.Now().UnixNano() }

// bootID is empty where the kernel does not tell; then no receipt outlives the
// process.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})
