package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands of docs/limits.md that ask a cluster answer what the page says, but for
// times that have passed meanwhile.
func TestLimitsDocumentAsksACluster(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, 3)
	bin := t.TempDir()
	if err := os.Symlink(tools.redisCLI, filepath.Join(bin, "redis-cli")); err != nil {
		t.Fatal(err)
	}
	ports := strings.NewReplacer("-p 6381", "-p "+portOf(c.nodes[0].resp), "-p 6382", "-p "+portOf(c.nodes[1].resp), "-p 6383", "-p "+portOf(c.nodes[2].resp))
	at := regexp.MustCompile(`\b[0-9]{13}\b`)
	asked := 0
	for block := range strings.SplitSeq(string(text), "\n```redis\n") {
		block, _, _ = strings.Cut(block, "\n```")
		if !strings.HasPrefix(block, "$ ") {
			continue
		}
		for step := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
			line, want, _ := strings.Cut(step, "\n")
			cmd := exec.Command("sh", "-c", ports.Replace(line))
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			got := at.ReplaceAllString(strings.TrimSpace(string(out)), "T")
			if want = at.ReplaceAllString(want, "T"); err != nil || got != want {
				t.Errorf("$ %s\n%s\nwant\n%s\n%v", line, got, want, err)
			}
			asked++
		}
	}
	if asked < 10 {
		t.Errorf("docs/limits.md asks a cluster %d times", asked)
	}
}
