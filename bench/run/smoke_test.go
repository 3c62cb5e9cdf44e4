package main

import (
	"strings"
	"testing"
)

func TestParseRate(t *testing.T) {
	const header = `"test","rps","avg_latency_ms"` + "\n"
	for _, c := range []struct {
		text string
		want float64
		ok   bool
	}{
		{header + `"EVALSHA a 1 key:__rand_int__ 0 1 86400 1","136736.55","90.796"` + "\n", 136736.55, true},
		{header + `"a ""quoted"", name","1.5","2"` + "\n", 1.5, true},
		{header, 0, false},
		{header + `"a","","2"` + "\n", 0, false},
		{`"test","avg"` + "\n" + `"a","1"` + "\n", 0, false},
		{"", 0, false},
	} {
		got, err := parseRate(c.text)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("parseRate(%q) = %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}

// Which figure counts, and on which side of the bound it must be.
func TestResultAgainstItsBound(t *testing.T) {
	ratio := result{ratio: true, bound: 2}
	ratio.add(300, 100) // 3
	ratio.add(100, 100) // 1: one bad round does not count
	ratio.add(200, 100) // 2
	slow := result{bound: 4}
	slow.add(1)
	slow.add(9)
	slow.add(2)
	slow.add(3)
	worst := result{bound: 5, worst: true}
	worst.add(1)
	worst.add(6)
	for _, c := range []struct {
		name  string
		r     *result
		value float64
		ok    bool
	}{{"ratio", &ratio, 2, true}, {"time", &slow, 2.5, true}, {"worst time", &worst, 6, false}} {
		if c.r.value() != c.value || c.r.ok() != c.ok {
			t.Errorf("%s: %v, ok %v, want %v, %v", c.name, c.r.value(), c.r.ok(), c.value, c.ok)
		}
	}
	ratio.bound = 2.01
	if ratio.ok() {
		t.Error("a ratio below its bound is ok")
	}
	var out strings.Builder
	ratio.print(&out)
	if !strings.Contains(out.String(), "median ratio 2.00, required at least 2.01: MISSED") {
		t.Errorf("report:\n%s", out.String())
	}
}

// A load that does something else than its name says must not become a figure.
func TestRatesCheckWhatTheLoadDid(t *testing.T) {
	if err := admittedAtLeader.check("limitd", 99, 100); err == nil {
		t.Error("99 of 100 admitted passes as all")
	}
	if err := admittedAtLeader.check("limitd", 100, 100); err != nil {
		t.Error(err)
	}
	if err := deniedAtLeader.check("limitd", 1, 100); err == nil {
		t.Error("1 admitted passes as none")
	}
}

func TestChooseNamesTheRowsThereAre(t *testing.T) {
	if got, err := choose(rowNames(), false); err != nil || len(got) != len(rows) {
		t.Errorf("choose(all) = %v, %v", got, err)
	}
	if _, err := choose("admitted,deny", false); err == nil || !strings.Contains(err.Error(), "failover") {
		t.Errorf("choose of a wrong row: %v", err)
	}
}
