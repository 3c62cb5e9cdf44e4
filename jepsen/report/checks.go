package report

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"limitd/jepsen/check"
)

// neighbours is how many operations of the same key are shown to each side of a
// counter-example.
const neighbours = 20

// checkRow is a line of the table of invariants.
type checkRow struct {
	Status, Name, Says string
	Promises           []string
	Checked            int64
	Figures            string
	Case               string // the place on the page of the first counter-example
}

func checkRows(all []check.Result) (rows []checkRow) {
	for _, c := range all {
		row := checkRow{Status: status(c.Status), Name: show(c.Name), Says: show(c.Says), Promises: words(c.Promise), Checked: c.Checked}
		var said []string
		for _, name := range slices.Sorted(maps.Keys(c.Figures)) {
			if name == "found" && c.Figures[name] == 0 {
				continue // the verdict says so
			}
			f := figure(name, c.Figures[name])
			said = append(said, f.Name+" "+f.Value)
		}
		row.Figures = strings.Join(said, ", ")
		if len(c.Examples) > 0 {
			row.Case = caseID(c.Name)
		}
		rows = append(rows, row)
	}
	return rows
}

// words are the names in a list that people wrote.
func words(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
}

func caseID(name string) string { return "case-" + url.PathEscape(name) }

// counterExample is the first one of a check, with what happened around it.
type counterExample struct {
	ID, Check, Status, Says string
	Key, Node               string
	Pictures                []link // porcupine's pages for the key
	While                   []string
	Before, After           int64 // operations of the key that are not shown
	Ops                     []neighbour
	Rows                    []cited
	Logs                    []excerpt
	More                    []string // the other counter-examples, in a line each
}

// neighbour is an operation of the same key.
type neighbour struct {
	Cited         bool
	Events        string
	Time, Took    string
	Node, Process string
	Command       string
	Outcome       string
	Class         string
	Said          string
}

// cases are the first counter-example of each check that has one.
func (r *run) cases() (all []*counterExample) {
	for _, c := range r.verdict.Checks {
		if len(c.Examples) == 0 {
			continue
		}
		e := c.Examples[0]
		x := &counterExample{ID: caseID(c.Name), Check: show(c.Name), Status: status(c.Status), Says: e.Says, Key: e.Key, Node: e.Node}
		for _, other := range c.Examples[1:] {
			x.More = append(x.More, other.Says)
		}
		r.around(x, e)
		all = append(all, x)
	}
	return all
}
