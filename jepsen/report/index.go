package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"limitd/jepsen/check"
	"limitd/jepsen/history"
)

// IndexFile is the name of the page of a soak, beside its ledger.
const IndexFile = "index.html"

// WriteIndex makes the page of the soak whose ledger lies in dir: what ran, with
// which verdict, and how long each kind of fault kept a cluster from admitting. Lines
// of the ledger that cannot be read are named on the page.
func WriteIndex(dir string) error {
	r := &run{dir: dir}
	ledger := readLines[history.SoakRun](r, history.LedgerFile, "no run is in the ledger yet")
	return write(filepath.Join(dir, IndexFile), "index.html", newIndex(dir, ledger, r.lacks))
}

// soak is what index.html shows.
type soak struct {
	Status, Summary string
	Lacks           []lack
	Facts           []fact
	Bad             []soakCell // runs that are not valid
	Profiles        []soakProfile
	Outages         []outage
	Ticks           []tick // of the axis of the outages
}

// soakProfile are the runs of one profile, by seed.
type soakProfile struct {
	Name  string
	Cells []soakCell
}

// soakCell is one run.
type soakCell struct {
	history.SoakRun
	Status string
	Report string // its page, "" if its directory was not kept
	Length string
}

func newIndex(dir string, ledger []history.SoakRun, lacks []lack) *soak {
	x := &soak{Status: string(check.Valid), Lacks: lacks}
	by := map[string][]soakCell{}
	var length, operations, changes, faults int64
	verdicts := map[string]int64{}
	commits := map[string]bool{}
	for _, one := range ledger {
		c := soakCell{SoakRun: one, Status: status(check.Status(one.Verdict)), Length: duration(one.Duration), Report: pageOf(dir, one.Dir)}
		by[one.Profile] = append(by[one.Profile], c)
		if c.Status != string(check.Valid) {
			x.Bad = append(x.Bad, c)
		}
		verdicts[c.Status]++
		commits[one.Commit] = true
		length += one.Duration
		operations += one.Operations
		changes += one.LeaderChanges
		for _, n := range one.Faults {
			faults += n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		slices.SortStableFunc(by[name], func(a, b soakCell) int { return cmp.Compare(a.Seed, b.Seed) })
		x.Profiles = append(x.Profiles, soakProfile{name, by[name]})
	}
	switch {
	case len(ledger) == 0:
		x.Status, x.Summary = string(check.Unknown), "No run yet."
	case len(x.Bad) == 0:
		x.Summary = fmt.Sprintf("All %s runs are valid.", count(int64(len(ledger))))
	default:
		x.Summary = fmt.Sprintf("%d of %s runs are not valid.", len(x.Bad), count(int64(len(ledger))))
		x.Status = string(check.Unknown)
		if verdicts[string(check.Invalid)] > 0 {
			x.Status = string(check.Invalid)
		}
	}
	x.Facts = []fact{
		{"runs", count(int64(len(ledger)))}, {"time under faults", strconv.FormatFloat(float64(length)/3600e9, 'f', 2, 64) + " h"}, {"operations", count(operations)},
		{"leader changes", count(changes)}, {"faults", count(faults)}, {"commits", count(int64(len(commits)))},
	}
	x.Outages, x.Ticks = outages(ledger)
	return x
}

// pageOf is the page of a run that was kept, relative to dir.
func pageOf(dir, run string) string {
	if run == "" {
		return ""
	}
	page := filepath.Join(run, File)
	if filepath.IsAbs(page) {
		rel, err := filepath.Rel(dir, page)
		if err != nil {
			return ""
		}
		page = rel
	}
	if _, err := os.Stat(filepath.Join(dir, page)); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return filepath.ToSlash(page)
}

// outage is how long the faults of a kind kept the cluster from admitting.
type outage struct {
	Kind                    string
	Faults, Measured        string
	Median, Worst           string
	Dots                    string // a dot for each fault, on the axis of all
	MedianAt                float64
	StripWidth, StripMiddle float64
}

const (
	stripWidth  = 300.0
	stripHeight = 18.0
)

func outages(ledger []history.SoakRun) (all []outage, ticks []tick) {
	faults, times := map[string]int64{}, map[string][]int64{}
	least, most := int64(math.MaxInt64), int64(0)
	for _, one := range ledger {
		for kind, n := range one.Faults {
			faults[kind] += n
		}
		for kind, list := range one.NoService {
			times[kind] = append(times[kind], list...)
			for _, ns := range list {
				least, most = min(least, ns), max(most, ns)
			}
		}
	}
	for kind := range times {
		faults[kind] += 0 // measured, though perhaps not counted
	}
	scale := newLogarithmic(float64(max(least, 1e6)), float64(max(most, 1e6)), 8, stripWidth-8)
	for _, kind := range slices.Sorted(maps.Keys(faults)) {
		o := outage{Kind: show(kind), Faults: count(faults[kind]), Measured: count(int64(len(times[kind]))), StripWidth: stripWidth, StripMiddle: stripHeight / 2}
		if list := times[kind]; len(list) > 0 {
			slices.Sort(list)
			median := quantile(list, .5)
			o.Median, o.Worst = duration(median), duration(list[len(list)-1])
			o.MedianAt = scale.at(float64(median))
			var dots pen
			for _, ns := range list {
				dots.dot(scale.at(float64(ns)), o.StripMiddle)
			}
			o.Dots = dots.String()
		}
		all = append(all, o)
	}
	if most > 0 {
		ticks = scale.decades()
	}
	return all, ticks
}
