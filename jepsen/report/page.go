package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"limitd/jepsen/check"
)

// page is what page.html shows.
type page struct {
	Title     string
	Status    string // valid, invalid, unknown
	Summary   string
	Replay    string
	Skipped   []string
	Unsettled []string // what did not come back after a fault
	Lacks     []lack
	Facts     []fact
	Figures   []fact
	Panels    []*panel
	Checks    []checkRow
	Cases     []*counterExample
	Pictures  []link // of porcupine
	Tails     []excerpt
	Settings  []string // lines
	Links     []string
}

// fact is a name and a value. A value that is longer than wide has a line of its own.
type fact struct{ Name, Value string }

const wide = 28

func (f fact) Wide() bool { return len(f.Value) >= wide }

type link struct{ File, Text string }

func newPage(r *run) *page {
	p := &page{
		Title:  "Fault run",
		Status: string(check.Unknown), Summary: "The run was not judged.",
		Replay: r.run.Replay, Skipped: r.run.Skipped, Unsettled: r.run.Unsettled, Lacks: r.lacks,
		Settings: settings(r.run.Settings), Links: r.links,
		Tails: r.tails(15),
	}
	if r.run.Commit != "" {
		p.Title = fmt.Sprintf("Fault run, seed %d, %s", r.run.Seed, show(r.run.Profile))
	}
	if r.verdict != nil {
		p.Status = status(r.verdict.Status)
		p.Summary = summary(r.verdict.Checks)
		p.Checks = checkRows(r.verdict.Checks)
		p.Figures = figures(r.verdict.Figures)
		p.Cases = r.cases()
	}
	p.Pictures = r.pictures()
	if len(p.Unsettled) > 0 && p.Status == string(check.Valid) {
		p.Status, p.Summary = string(check.Unknown), p.Summary+" But the run did not end well."
	}
	p.Facts = r.facts()
	x := timeScale(r.end)
	length, all := r.spread()
	p.Panels = append(p.Panels, r.faultPanel(x), r.ratePanel(x, length, all))
	p.Panels = append(p.Panels, r.latencyPanels(x, length, all)...)
	p.Panels = append(p.Panels, r.rolePanel(x), r.clockPanel(x))
	for _, one := range p.Panels[1:] {
		one.Bands = bands(r.faults, x, one)
	}
	return p
}

// status keeps to the three words that the style sheet knows.
func status(s check.Status) string {
	if s == check.Valid || s == check.Invalid {
		return string(s)
	}
	return string(check.Unknown)
}

// summary says how many checks hold, and which do not.
func summary(all []check.Result) string {
	var bad []string
	for _, c := range all {
		if c.Status != check.Valid {
			bad = append(bad, show(c.Name))
		}
	}
	if len(bad) == 0 {
		return fmt.Sprintf("All %d checks hold.", len(all))
	}
	return fmt.Sprintf("%d of %d checks do not hold: %s.", len(bad), len(all), strings.Join(bad, ", "))
}

// facts are what the run was.
func (r *run) facts() (all []fact) {
	add := func(name, value string) {
		if value != "" {
			all = append(all, fact{show(name), show(value)})
		}
	}
	if r.run.Commit != "" {
		add("seed", strconv.FormatUint(r.run.Seed, 10))
	}
	add("commit", r.run.Commit)
	add("upgraded from", r.run.Previous)
	add("mode", r.run.Mode)
	add("profile", r.run.Profile)
	add("nemeses", strings.Join(r.run.Nemeses, ", "))
	add("nodes", strings.Join(r.nodes, ", "))
	add("started", r.run.Started)
	if r.end > 0 {
		add("length", duration(r.end))
	}
	add("operations", count(int64(len(r.ops))))
	if open := r.neverEnded(); open > 0 {
		add("never ended", count(open))
	}
	add("faults", r.countFaults())
	if len(r.samples) > 0 {
		add("leader changes seen", count(r.leaderChanges()))
	}
	for _, name := range slices.Sorted(maps.Keys(r.run.Tools)) {
		add(name, r.run.Tools[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.run.Gates)) {
		add("gate "+name, "at least "+count(r.run.Gates[name]))
	}
	slices.SortStableFunc(all, func(a, b fact) int { return cmp.Compare(len(a.Value)/wide, len(b.Value)/wide) })
	return all
}

func (r *run) neverEnded() (n int64) {
	for i := range r.ops {
		if !r.ops[i].ended {
			n++
		}
	}
	return n
}

// countFaults counts them by kind.
func (r *run) countFaults() string {
	n := map[string]int{}
	for _, f := range r.faults {
		n[f.name]++
	}
	var words []string
	for _, name := range kinds(r.faults) {
		words = append(words, fmt.Sprintf("%s %d", name, n[name]))
	}
	return strings.Join(words, ", ")
}

func figures(m map[string]int64) (all []fact) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, figure(name, m[name]))
	}
	return all
}

// figure is one for people: a name that ends in ns has a length of time.
func figure(name string, n int64) fact {
	name, ns := strings.CutSuffix(strings.ReplaceAll(name, "_", " "), " ns")
	if ns {
		return fact{show(name), duration(n)}
	}
	return fact{show(name), count(n)}
}

// picturesOf are porcupine's pages for a key: their names begin with it, with a dash for
// each character that is no letter and no digit.
func (r *run) picturesOf(key string) (all []link) {
	if key == "" {
		return nil
	}
	begin := strings.Map(func(c rune) rune {
		if c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return c
		}
		return '-'
	}, key)
	for _, p := range r.pictures() {
		if rest, of := strings.CutPrefix(p.Text, begin); of && (rest == "-exact" || strings.HasPrefix(rest, "-seen-")) {
			all = append(all, p)
		}
	}
	return all
}

// pictures are all of porcupine's pages.
func (r *run) pictures() (all []link) {
	for _, name := range glob(r.dir, "porcupine", ".html") {
		all = append(all, link{"porcupine/" + name + ".html", show(name)})
	}
	return all
}

// settings are the lines of the nodes' configuration.
func settings(toml string) []string {
	if toml = strings.TrimSpace(toml); toml == "" {
		return nil
	}
	return strings.Split(toml, "\n")
}
