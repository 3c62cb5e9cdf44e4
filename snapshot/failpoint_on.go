//go:build failpoint

package snapshot

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Failpoint kills the process with SIGKILL when LIMITD_FAILPOINT is "name", or "name=N" and this is the Nth time that the place is
// reached. As after a power cut, no deferred function runs and nothing is flushed. A process with OnFailpoint set lives on.
func Failpoint(name string) {
	if OnFailpoint != nil {
		OnFailpoint(name)
		return
	}
	want, nth, _ := strings.Cut(os.Getenv("LIMITD_FAILPOINT"), "=")
	if want != name {
		return
	}
	hits.Lock()
	defer hits.Unlock()
	hits.n++
	if n, err := strconv.Atoi(nth); err == nil && hits.n < n {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// OnFailpoint is called at each such place, on the goroutine that has come there: a simulation of several nodes in one process takes
// the crash of one of them from here. It is set before the first store is opened.
var OnFailpoint func(name string)

var hits struct {
	sync.Mutex
	n int
}
