//go:build !failpoint

package sim

// crashPoints are compiled in with the tag only.
var crashPoints []string

// asProcess runs f; without crash points nobody asks whose goroutine it is.
func asProcess(_ *process, f func()) { f() }
