//go:build !nextformat

package snapshot

const newestVersion = 1
