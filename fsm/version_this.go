//go:build !nextformat

package fsm

const newestEntry = 2
