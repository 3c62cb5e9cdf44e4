package main

import "testing"

func TestDurationsAreSpelledExactly(t *testing.T) {
	for _, tc := range []struct {
		ns                   int64
		spell, days, seconds string
	}{
		{0, "0s", "0s", "0"},
		{1, "1ns", "1ns", "0.000000001"},
		{600e6, "600ms", "600ms", "0.6"},
		{142857143, "142.857143ms", "142.857143ms", "0.142857143"},
		{1e9, "1s", "1s", "1"},
		{60e9, "1m", "1m", "60"},
		{90.5e9, "1m30.5s", "1m30.5s", "90.5"},
		{week + hour, "1w1h", "7d1h", "608400"},
		{365 * day, "52w1d", "365d", "31536000"},
	} {
		if got := seconds(tc.ns); got != tc.seconds {
			t.Errorf("%d ns are %s s", tc.ns, got)
		}
		if s, d := spell(tc.ns), spellDays(tc.ns); s != tc.spell || d != tc.days {
			t.Errorf("%d ns are spelled %s, %s", tc.ns, s, d)
		}
	}
}
