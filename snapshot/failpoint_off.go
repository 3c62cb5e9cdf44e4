//go:build !failpoint

package snapshot

// Failpoint marks a place where a crash must do no harm. In builds with the tag `failpoint`, the process kills itself there when the
// environment variable LIMITD_FAILPOINT names the place; in all others it is nothing.
func Failpoint(string) {}
