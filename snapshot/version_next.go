//go:build nextformat

package snapshot

// A version that no release has, with the content of version 1: what tests take for the release after this one.
const newestVersion = 2
