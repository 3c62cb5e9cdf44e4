package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAdmitOfThePageChargesOnce: the function of docs/clients.md that asks again under
// one ID is answered for each request across a kill of the leader, and what it was
// allowed is what was charged.
func TestAdmitOfThePageChargesOnce(t *testing.T) {
	t.Parallel()
	const before, after = 100, 400
	blocks := snippets(t, "clients.md")
	at := slices.IndexFunc(blocks, func(s snippet) bool { return strings.Contains(s.code, "def admit(") })
	if at < 0 {
		t.Fatal("docs/clients.md has no function admit")
	}
	admit, _, _ := strings.Cut(blocks[at].code, "\nprint(")

	c := startCluster(t, 3)
	leader := c.leader()
	asked := c.others(leader)[0]
	script := strings.ReplaceAll(admit, "6381", portOf(asked.resp)) + fmt.Sprintf(`
import sys
one = lambda: admit("a:1", "100000/520w", fail_open=False, patience=15)
allowed = sum(one() for _ in range(%d))
print("begun", flush=True)
sys.stdin.readline()
print(allowed + sum(one() for _ in range(%d)))
`, before, after)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tools.python, "-c", script)
	var stderr output
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	fmt.Fprintln(stdin)
	leader.kill() // while it asks
	lines.Scan()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if want := fmt.Sprint(before + after); lines.Text() != want {
		t.Errorf("%s requests were let in, not %s", lines.Text(), want)
	}
	v, err := asked.r.Do(context.Background(), "RL.PEEK", "a:1", "100000/520w").Int64Slice()
	if err != nil || 100000-v[2] != before+after {
		t.Errorf("RL.PEEK answers %v, %v: %d were to be charged", v, err, before+after)
	}
}
