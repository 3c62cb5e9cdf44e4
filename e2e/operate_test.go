package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOperateDocument pastes docs/operate.md into a shell, block by block, with
// other ports, and watches the count of the one key that the page charges: each
// step must find exactly what the steps before have left. The last one finds what
// the backup held.
func TestOperateDocument(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED in the short form: it starts 14 nodes, one after the other")
	}
	text, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := shellBlocks(string(text))
	if len(blocks) < 9 {
		t.Fatalf("docs/operate.md has %d blocks", len(blocks))
	}
	out := paste(t, otherPorts(t, strings.Join(blocks, "\n")))

	var left []int64
	for _, r := range throttleReplies(out) {
		if r[0] != 0 || r[1] != 16 {
			t.Errorf("CL.THROTTLE answered %v", r)
		}
		left = append(left, r[2])
	}
	// Eight charges, the backup after the sixth. The restore forgets the seventh.
	if want := "[15 14 13 12 11 10 9 9]"; fmt.Sprint(left) != want {
		t.Errorf("left after each step %v, want %s", left, want)
	}
	if t.Failed() {
		t.Log(out)
	}
}

// shellBlocks are the blocks that a reader is to paste.
func shellBlocks(markdown string) []string {
	var blocks []string
	for {
		_, rest, ok := strings.Cut(markdown, "\n```sh\n")
		if !ok {
			return blocks
		}
		block, after, _ := strings.Cut(rest, "\n```")
		blocks, markdown = append(blocks, block), after
	}
}

// otherPorts replaces the ports of the page by reserved ones.
func otherPorts(t *testing.T, script string) string {
	ports := map[string]string{}
	return regexp.MustCompile(`\b[67]38[0-9]\b`).ReplaceAllStringFunc(script, func(port string) string {
		if ports[port] == "" {
			ports[port] = strconv.Itoa(reservePorts(t, 1)[0])
		}
		return ports[port]
	})
}

// paste runs the script in one shell that stops at the first line that fails, and
// ends whatever the script left running.
func paste(t *testing.T, script string) string {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(tools.limitd, filepath.Join(bin, "limitd")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-e", "-x", "-s")
	cmd.Stdin = strings.NewReader(script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+filepath.Dir(tools.redisCLI)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second // for what the script left running, which holds its output
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := -cmd.Process.Pid // the shell and the nodes that it started
	t.Cleanup(func() { syscall.Kill(group, syscall.SIGKILL) })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			logs, _ := exec.Command("sh", "-c", "tail -n 15 "+filepath.Join(dir, "*", "n?.log")).CombinedOutput()
			t.Fatalf("the page stops (%v) after:\n%s\n%s", err, tail(out.String(), 30), logs)
		}
	case <-time.After(3 * time.Minute):
		t.Fatalf("the page hangs after:\n%s", tail(out.String(), 30))
	}
	return out.String()
}

// throttleReplies finds the replies of CL.THROTTLE in what redis-cli printed.
func throttleReplies(out string) (replies []reply) {
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "+ redis-cli") || !strings.Contains(line, "CL.THROTTLE") || i+5 >= len(lines) {
			continue
		}
		var r reply
		for j := range r {
			r[j], _ = strconv.ParseInt(lines[i+1+j], 10, 64)
		}
		replies = append(replies, r)
	}
	return replies
}
