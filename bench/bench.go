// Package bench holds what the measuring programs below it share: the baseline.
package bench

import _ "embed"

// GCRA is the Lua script that limitd is measured against.
//
//go:embed gcra.lua
var GCRA string
