package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestResultsPage(t *testing.T) {
	kept := &result{name: "kept", unit: "calls/s", ratio: true, bound: 2, stretch: 2.5}
	kept.add(285102, 100000)
	kept.add(250000, 100000)
	missed := &result{name: "missed", unit: "ms", bound: 5}
	missed.add(7)
	missed.note("why")
	free := &result{name: "free", unit: "calls/s", free: true, digits: -1}
	free.add(1234.4)
	line := &result{name: "a plot", free: true, plot: "p.svg", series: []series{{"a & b", []point{{100, 0.1, 1}, {1000, 0.2, 20}}}}}
	line.add(1)
	file := filepath.Join(t.TempDir(), "RESULTS.md")
	if err := (&env{}).writeResults(file, []*result{kept, missed, free, line}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| kept | 267,551 calls/s | 100,000 calls/s | **2.68 ×** (2.50 to 2.85) | at least 2 (stretch 2.5) | pass, stretch too |",
		"| missed |  |  | **7.00 ms** (one run) | at most 5 | **missed** |",
		"| free |  |  | **1234 calls/s** (one run) |",
		"![a plot](p.svg)", "missed:\n\n- why",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	svg, err := os.ReadFile(filepath.Join(filepath.Dir(file), "p.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the plot is no XML: %v\n%s", err, svg)
		}
	}
	if !strings.Contains(string(svg), "a &amp; b (p99; dashed: p50)") || strings.Count(string(svg), "<polyline") != 2 {
		t.Errorf("plot:\n%s", svg)
	}
}

func TestRowsAreChosenByNameOrSet(t *testing.T) {
	all, err := choose("all", true)
	if err != nil || len(all) != len(rows) {
		t.Errorf("%d rows of %d, %v", len(all), len(rows), err)
	}
	some, err := choose("all", false)
	if err != nil || len(some) != len(rows)-3 || slices.ContainsFunc(some, func(r row) bool { return strings.Contains(r.name, "cell") }) {
		t.Errorf("without redis-cell: %d rows of %d, %v", len(some), len(rows), err)
	}
	smoke, err := choose("smoke,hot-key", false)
	if err != nil || len(smoke) != 8 || smoke[7].name != "hot-key" {
		t.Errorf("%v, %v", smoke, err)
	}
	if _, err := choose("smok", true); err == nil {
		t.Error("a row that does not exist is chosen")
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.name] || strings.ContainsAny(r.name, " ,") {
			t.Errorf("row %q is there twice, or cannot be named", r.name)
		}
		seen[r.name] = true
	}
}
