// Package jepsen_test keeps README.md true.
package jepsen_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"limitd/jepsen/nemesis"
)

// A nemesis, a check or a mutant without a row is one that nobody can read about; a
// row without its code tells of what is not done.
func TestTheReadmeHasARowForEachNemesisCheckAndMutant(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	var nemeses []string
	for _, n := range nemesis.All {
		nemeses = append(nemeses, n.Name)
	}
	same(t, rows(text, "## Nemeses"), nemeses)
	same(t, rows(text, "## Checks"), inCode(t, "check/run.go", `(?m)^\t\{"([a-z-]+)", "`))
	same(t, rows(text, "## Self-test"), mutants(t))
}

var quoted = regexp.MustCompile("`([a-z-]+)`")

// rows are the names in the first column of a section's table.
func rows(text, section string) (names []string) {
	_, text, _ = strings.Cut(text, section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| `") {
			for _, m := range quoted.FindAllStringSubmatch(first, -1) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

func inCode(t *testing.T, file, pattern string) (names []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(b), -1) {
		names = append(names, m[1])
	}
	return names
}

// mutants are the defects that some line of limitd asks for.
func mutants(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "../jepsen") {
			names = append(names, inCode(t, path, `mutant\.On\("([a-z-]+)"\)`)...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func same(t *testing.T, rows, code []string) {
	t.Helper()
	if len(rows) == 0 || len(code) == 0 {
		t.Fatalf("%d rows, %d names in the code", len(rows), len(code))
	}
	in := map[string]int{}
	for _, name := range rows {
		in[name] |= 1
	}
	for _, name := range code {
		in[name] |= 2
	}
	for name, where := range in {
		switch where {
		case 1:
			t.Errorf("README.md has a row for %s, which is not in the code", name)
		case 2:
			t.Errorf("README.md has no row for %s", name)
		}
	}
}
