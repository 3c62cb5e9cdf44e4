//go:build nextformat

package fsm

// A version that no release has, with the body of version 2: what tests take for
// the release after this one.
const newestEntry = 3
