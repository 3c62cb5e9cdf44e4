//go:build mutant

package mutant

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A defect that no line asks for would count as one that no check can find; one that
// is not listed could not be chosen.
func TestEveryDefectHasALineAndAName(t *testing.T) {
	use := regexp.MustCompile(`mutant\.On\("([^"]*)"\)`)
	asked := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range use.FindAllSubmatch(text, -1) {
			asked[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(asked))
	if want := slices.Sorted(slices.Values(Names)); !slices.Equal(got, want) {
		t.Errorf("lines ask for %q\nlisted are %q", got, want)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names {
		if !strings.Contains(string(doc), "//\t"+name+" ") {
			t.Errorf("doc.go does not say what %s is", name)
		}
	}
}

func TestAMisspelledDefectIsNone(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a process with a defect that there is not")
		}
	}()
	Choose("nosnyc")
}
