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
// reached. As after a power cut, no deferred function runs and nothing is flushed.
func Failpoint(name string) {
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

var hits struct {
	sync.Mutex
	n int
}
