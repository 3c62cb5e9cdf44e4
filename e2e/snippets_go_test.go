package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// goModule is where Go snippets of some headings are built: all in one program, which
// is told by its argument which one to run.
type goModule struct {
	dir     string            // of its go.mod
	imports map[string]string // by heading; "": of all others
}

// The Go clients besides go-redis are in the module of ../clients, if it is there.
var goModules = []goModule{
	{dir: "../clients/go", imports: map[string]string{
		"rueidis":  `"github.com/redis/rueidis"`,
		"redigo":   `"github.com/gomodule/redigo/redis"`,
		"radix v4": `"github.com/mediocregopher/radix/v4"`,
	}},
	{dir: "..", imports: map[string]string{"": `"github.com/redis/go-redis/v9"`}},
}

// importOf is the import of the snippet's client; empty if the module is not for it.
func (m *goModule) importOf(s *snippet) string {
	if own := m.imports[s.heading]; own != "" {
		return own
	}
	return m.imports[""]
}

// file puts the snippet into a file with a function of a name: declarations outside of
// it, statements inside.
func (m *goModule) file(s *snippet, function string) string {
	var imports, outside, inside strings.Builder
	for _, std := range []string{"context", "fmt", "net", "time"} {
		if regexp.MustCompile(`\b` + std + `\.`).MatchString(s.code) {
			fmt.Fprintf(&imports, "%q\n", std)
		}
	}
	to := &inside
	for line := range strings.Lines(s.code) {
		if strings.HasPrefix(line, "func ") || strings.HasPrefix(line, "type ") {
			to = &outside
		}
		to.WriteString(line)
		if line == "}\n" {
			to = &inside
		}
	}
	return fmt.Sprintf("package main\n\nimport (\n%s%s\n)\n\n%s\nfunc %s() {\n%s}\n", &imports, m.importOf(s), &outside, function, &inside)
}

// program builds all snippets that are for the module. They are told apart by their
// place among all.
func (m *goModule) program(dir string, all []snippet) (string, error) {
	bin := filepath.Join(dir, "snippets")
	args := []string{"build", "-buildvcs=false", "-o", bin}
	files := map[string]string{}
	var calls strings.Builder
	for i := range all {
		if s := &all[i]; s.language == "go" && moduleOf(s) == m {
			function := fmt.Sprint("snippet", i)
			files[function+".go"] = m.file(s, function)
			fmt.Fprintf(&calls, "case %q:\n%s()\n", fmt.Sprint(i), function)
		}
	}
	files["main.go"] = "package main\n\nimport \"os\"\n\nfunc main() {\nswitch os.Args[1] {\n" + calls.String() + "default:\npanic(os.Args[1])\n}\n}\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
		args = append(args, filepath.Join(dir, name))
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = m.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
}

func moduleOf(s *snippet) *goModule {
	for i := range goModules {
		if goModules[i].importOf(s) != "" {
			return &goModules[i]
		}
	}
	return nil
}

// buildGo begins to build the Go snippets, and lets each know how to be run.
func buildGo(t *testing.T, all []snippet) {
	for i := range goModules {
		m, dir := &goModules[i], t.TempDir()
		if _, err := os.Stat(filepath.Join(m.dir, "go.mod")); err != nil {
			continue
		}
		build := sync.OnceValues(func() (string, error) { return m.program(dir, all) })
		for n := range all {
			if s := &all[n]; s.language == "go" && moduleOf(s) == m {
				s.program = func(t *testing.T) *exec.Cmd {
					bin, err := build()
					if err != nil {
						t.Fatal(err)
					}
					return exec.Command(bin, fmt.Sprint(n))
				}
			}
		}
		ended := make(chan struct{})
		go func() { build(); close(ended) }()
		t.Cleanup(func() { <-ended })
	}
}

func goProgram(t *testing.T, s *snippet) []*exec.Cmd {
	if s.program == nil {
		t.Skipf("NOT TESTED: %s is missing", moduleOf(s).dir)
	}
	return []*exec.Cmd{s.program(t)}
}
