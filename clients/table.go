package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	tableBegin = "<!-- The table is written by make clients. -->"
	tableEnd   = "<!-- End of the table. -->"
)

// table is the rows in Markdown.
func (m *matrix) table() string {
	var b strings.Builder
	line := func(columns ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(columns, " | ")) }
	line("client", "version", "connects", "limit calls, pipeline", "restart of its node", "leader transfer", "leader kill",
		"seconds of errors after the leader kill", "resends by itself")
	line(slices.Repeat([]string{"---"}, 9)...)
	for _, r := range m.rows {
		columns := []string{r.client.name, r.version, r.connects(), r.green(calls, pipeline)}
		if r.client.generator {
			columns = append(columns, slices.Repeat([]string{"not applicable"}, 5)...)
		} else {
			columns = append(columns, r.green(restart), r.green(transfer), r.green(kill), r.median(), r.repeats())
		}
		line(columns...)
	}
	return b.String()
}

// green is what a cell says that has what it should.
func (r *row) green(cells ...cell) string {
	for _, at := range cells {
		if r.failed[at] != nil {
			return "**no**"
		}
	}
	return "yes"
}

func (r *row) connects() string {
	if r.failed[connects] != nil {
		return "**no**"
	}
	if r.client.noUser {
		return "RESP" + r.resp + "; password"
	}
	return "RESP" + r.resp + "; password, user"
}

func (r *row) median() string {
	if len(r.seconds) == 0 || r.failed[kill] != nil {
		return ""
	}
	sorted := slices.Sorted(slices.Values(r.seconds))
	n := len(sorted)
	return fmt.Sprintf("%.1f", (sorted[(n-1)/2]+sorted[n/2])/2)
}

func (r *row) repeats() string {
	switch {
	case r.failed[lostReply] != nil:
		return "**?**"
	case r.resends:
		return "yes"
	}
	return "no"
}

// surprises lists the errors that clients saw in the cells with faults, and how often.
func (m *matrix) surprises() string {
	var b strings.Builder
	for _, r := range m.rows {
		for _, text := range slices.Sorted(maps.Keys(r.surprise)) {
			fmt.Fprintf(&b, "%-16s %4d  %s\n", r.client.name, r.surprise[text], text)
		}
	}
	return b.String()
}

// writeTable puts a table into a file, between the two markers.
func writeTable(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return fmt.Errorf("%s has no lines %q and %q for the table to go between", file, tableBegin, tableEnd)
	}
	return os.WriteFile(file, []byte(before+tableBegin+"\n\n"+table+"\n"+tableEnd+after), 0o644)
}
