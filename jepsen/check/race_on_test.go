//go:build race

package check

// race: the race detector makes all of it several times slower.
const race = true
