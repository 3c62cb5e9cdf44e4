//go:build !mutant

// Package mutant holds the switches of known-bad builds: with the tag `mutant`, LIMITD_MUTANT names
// the one defect that the process has, so that the checkers can be checked. Without the tag there is no switch, and no cost.
package mutant

// On says that this process has the defect. It is false, and compiled away, without the tag.
func On(string) bool { return false }
