package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// writeResults writes what was measured as a page, and its plots beside it.
func (e *env) writeResults(file string, results []*result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results\n\nWritten by `%s`; bench/README.md says what the rows are.\n\n%s\n", invocation(), e.where())
	fmt.Fprintf(&b, "\n| row | limitd | against | figure (spread) | required | |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		if !r.free {
			fmt.Fprintln(&b, r.markdown())
		}
	}
	fmt.Fprintf(&b, "\n## What else was measured\n\n| row | limitd | against | figure (spread) |\n|---|---|---|---|\n")
	for _, r := range results {
		if r.free && r.plot == "" {
			fmt.Fprintln(&b, r.markdown())
		}
	}
	errs := []error{}
	for _, r := range results {
		if r.plot == "" {
			continue
		}
		errs = append(errs, os.WriteFile(filepath.Join(filepath.Dir(file), r.plot), []byte(plotSVG(r.name, r.series)), 0o644))
		fmt.Fprintf(&b, "\n## %s\n\n![%s](%s)\n\n", r.name, r.name, r.plot)
		for _, n := range r.notes {
			fmt.Fprintf(&b, "    %s\n", n)
		}
	}
	fmt.Fprintf(&b, "\n## Notes of the rows\n")
	for _, r := range results {
		if len(r.notes) > 0 && r.plot == "" {
			fmt.Fprintf(&b, "\n%s:\n\n", r.name)
			for _, n := range r.notes {
				fmt.Fprintf(&b, "- %s\n", n)
			}
		}
	}
	errs = append(errs, os.WriteFile(file, []byte(b.String()), 0o644))
	return errors.Join(errs...)
}

// invocation is how this run was called.
func invocation() string {
	return strings.Join(append([]string{"go run ./bench/run"}, os.Args[1:]...), " ")
}

// where names the machine and the commit.
func (e *env) where() string {
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
				break
			}
		}
	}
	memory := ""
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		memory = strings.Join(strings.Fields(first)[1:], " ")
	}
	redis, _ := exec.Command("redis-server", "--version").Output()
	return fmt.Sprintf("Commit %s, %d × %s, %s of memory, %s, %s. Load of the machine before the start: %s.",
		strings.TrimSpace(string(commit)), runtime.NumCPU(), model, memory, runtime.Version(), strings.Join(strings.Fields(string(redis))[:3], " "), e.loadBefore)
}

// markdown is the result as a line of the table.
func (r *result) markdown() string {
	if r.missing != "" {
		line := fmt.Sprintf("| %s | | | NOT MEASURED: %s |", r.name, strings.ReplaceAll(r.missing, "|", "\\|"))
		if !r.free {
			line += fmt.Sprintf(" %s | **not measured** |", r.required())
		}
		return line
	}
	figures := r.figures()
	spread := fmt.Sprintf("%.*f to %.*f", r.places(), slices.Min(figures), r.places(), slices.Max(figures))
	if len(figures) == 1 {
		spread = "one run"
	}
	ours, against, unit := "", "", r.unit
	if r.ratio {
		var a, b []float64
		for _, s := range r.samples {
			a, b = append(a, s[0]), append(b, s[1])
		}
		ours, against, unit = fmt.Sprintf("%s %s", thousands(median(a)), r.unit), fmt.Sprintf("%s %s", thousands(median(b)), r.unit), "×"
		if r.other != "" {
			against += ", " + strings.TrimSuffix(r.other, ",")
		}
	}
	line := fmt.Sprintf("| %s | %s | %s | **%s** (%s) |", r.name, ours, against, strings.TrimSpace(fmt.Sprintf("%.*f %s", r.places(), r.value(), unit)), spread)
	if r.free {
		return line
	}
	verdict := "pass"
	switch {
	case !r.ok():
		verdict = "**missed**"
	case r.stretch != 0 && (r.value() >= r.stretch) == (r.relation() == "at least"):
		verdict = "pass, stretch too"
	}
	return fmt.Sprintf("%s %s | %s |", line, r.required(), verdict)
}

// relation is that of the figure to its bound.
func (r *result) relation() string {
	if r.ratio && !r.less {
		return "at least"
	}
	return "at most"
}

func (r *result) required() string {
	want := fmt.Sprintf("%s %g", r.relation(), r.bound)
	if r.stretch != 0 {
		want += fmt.Sprintf(" (stretch %g)", r.stretch)
	}
	return want
}

// thousands writes a number for people: 285,102.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
