package e2e

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"limitd/limiter"
)

// The commands of the pages for users that ask a cluster answer what the page says, but
// for times that have passed meanwhile.
func TestPagesAskACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	bin := t.TempDir()
	if err := os.Symlink(tools.redisCLI, filepath.Join(bin, "redis-cli")); err != nil {
		t.Fatal(err)
	}
	for page, least := range map[string]int{"limits.md": 10, "clients.md": 12, "migrate.md": 10} {
		t.Run(page, func(t *testing.T) {
			c.flush(c.nodes[0])
			if asked := c.typePage(t, page, bin); asked < least {
				t.Errorf("docs/%s asks a cluster %d times, not %d", page, asked, least)
			}
		})
	}
}

// atMS is what a time of the cluster looks like, in ms.
var atMS = regexp.MustCompile(`\b[0-9]{13}\b`)

// typePage types the blocks of a page that ask, and counts the commands.
func (c *cluster) typePage(t *testing.T, page, bin string) (asked int) {
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(text), "\n```redis\n") {
		block, _, _ = strings.Cut(block, "\n```")
		if !strings.HasPrefix(block, "$ ") {
			continue
		}
		for step := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
			line, want, _ := strings.Cut(step, "\n")
			cmd := exec.Command("sh", "-c", c.withPorts(line))
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			got := atMS.ReplaceAllString(strings.TrimSpace(string(out)), "T")
			if want = atMS.ReplaceAllString(want, "T"); err != nil || got != want {
				t.Errorf("$ %s\n%s\nwant\n%s\n%v", line, got, want, err)
			}
			asked++
		}
	}
	return asked
}

// withPorts puts the cluster's ports in the place of those that the pages name.
func (c *cluster) withPorts(text string) string {
	return strings.NewReplacer("6381", portOf(c.nodes[0].resp), "6382", portOf(c.nodes[1].resp), "6383", portOf(c.nodes[2].resp)).Replace(text)
}

// flush has the cluster forget everything.
func (c *cluster) flush(nd *node) {
	c.t.Helper()
	eventually(c.t, 20*time.Second, "FLUSHALL", func() bool { return nd.r.FlushAll(context.Background()).Err() == nil })
}

// docs/clients.md has each error that says what became of a call, and what the wire
// refuses, word for word.
func TestClientsPageHasTheErrors(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	for s := limiter.TryAgain; s.Code() != "err" || s.Error() != "ERR unknown status"; s++ {
		words := strings.Fields(s.Error())
		if want := words[0]; want == "ERR" {
			want = strings.Join(words[:3], " ") // ERR and what it is about
			if !strings.Contains(string(page), "`-"+want) {
				t.Errorf("docs/clients.md has no `-%s`", want)
			}
		} else if !regexp.MustCompile("`-" + want + "[ `]").Match(page) {
			t.Errorf("docs/clients.md has no `-%s …`", want)
		}
	}

	dir, ports := t.TempDir(), reservePorts(t, 2)
	startSingle(t, dir, ports)
	awaitAnswer(t, addr(ports[0]))
	key := strings.Repeat("k", 1100)
	for _, sent := range []string{
		"*1025\r\n",
		"*1\r\n$65537\r\n",
		"*20\r\n" + strings.Repeat("$65536\r\n"+strings.Repeat("x", 65536)+"\r\n", 16),
		"CL.THROTTLE " + key + " 1 1 1\r\nQUIT\r\n",
	} {
		conn, err := net.DialTimeout("tcp", addr(ports[0]), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		conn.Write([]byte(sent)) // may fail behind what is refused
		answer, _ := bufio.NewReader(conn).ReadString('\n')
		conn.Close()
		if answer = strings.TrimSpace(answer); !strings.HasPrefix(answer, "-ERR ") || !strings.Contains(string(page), answer) {
			t.Errorf("%.40q is answered %q, which docs/clients.md does not have", sent, answer)
		}
	}
}
