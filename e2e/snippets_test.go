package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// snippet is a block of a page in a programming language. What it prints stands in
// comments behind what prints it.
type snippet struct {
	page, heading, language, code string
	firstIsDown                   bool // it is for the day on which the first node does not answer

	program func(*testing.T) *exec.Cmd // of Go; nil: there is none
}

var (
	fence    = regexp.MustCompile("^```([a-z]*)$")
	printing = regexp.MustCompile(`print|Println|console\.log|echo |^p |io:format`)
	comment  = regexp.MustCompile(`.*[;)\]}.,] *(?://|#|--|%) (.*)$`)
)

// snippets are the blocks of a page in languages, in order.
func snippets(t *testing.T, page string) (found []snippet) {
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	var at snippet
	var open bool
	for line := range strings.SplitSeq(string(text), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open && line == "```":
			found, open = append(found, at), false
			at.firstIsDown = false
		case open:
			at.code += line + "\n"
		case m != nil:
			open = true
			at.page, at.language, at.code = page, m[1], ""
		case strings.HasPrefix(line, "#"):
			at.heading = strings.TrimLeft(line, "# ")
		case line == "<!-- 6381 is down -->":
			at.firstIsDown = true
		}
	}
	return found
}

// prints is what the snippet says that it prints, line by line.
func (s *snippet) prints() (lines []string) {
	for line := range strings.Lines(s.code) {
		if m := comment.FindStringSubmatch(strings.TrimSpace(line)); m != nil && printing.MatchString(line) {
			lines = append(lines, m[1])
		}
	}
	return lines
}

// TestPagesRun runs each snippet of the pages against a cluster, by the languages and
// libraries that this machine has, and looks that it prints what the page says.
func TestPagesRun(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	ports := reservePorts(t, 2)
	startSingle(t, t.TempDir(), ports) // where the pages have a Redis with redis-cell
	awaitAnswer(t, addr(ports[0]))

	all := append(snippets(t, "clients.md"), snippets(t, "migrate.md")...)
	slices.SortStableFunc(all, func(a, b snippet) int { return oneIf(a.firstIsDown) - oneIf(b.firstIsDown) })
	proxy := newLossy(t, c.nodes[0].resp, "user:42")
	for i := range all {
		if !all[i].firstIsDown {
			all[i].code = strings.ReplaceAll(all[i].code, "6381", portOf(proxy.address))
		}
		all[i].code = strings.ReplaceAll(c.withPorts(all[i].code), "6379", fmt.Sprint(ports[0]))
	}
	buildGo(t, all)
	ran := map[string]int{}
	for _, s := range all {
		run := languages[s.language]
		if run == nil {
			if s.language != "redis" { // TestPagesAskACluster
				t.Errorf("docs/%s has a block of %q under %q, which no test runs", s.page, s.language, s.heading)
			}
			continue
		}
		t.Run(s.page+"/"+s.heading+"/"+s.language, func(t *testing.T) {
			if s.firstIsDown && c.nodes[0].running() {
				c.nodes[0].kill()
				c.awaitDecides(c.nodes[1])
				c.awaitDecides(c.nodes[2])
			}
			want := strings.Join(s.prints(), "\n")
			if want == "" && s.language != "toml" && s.language != "haproxy" {
				t.Fatal("it prints nothing, so nothing is seen of it")
			}
			for _, cmd := range run(t, &s) {
				c.flush(c.nodes[2])
				out, err := cmd.CombinedOutput()
				got := atMS.ReplaceAllString(strings.TrimSpace(string(out)), "T")
				if err != nil || want != "" && got != atMS.ReplaceAllString(want, "T") {
					t.Errorf("%v: %v\n%s\nprints\n%s\nwant\n%s", cmd.Args, err, s.code, got, want)
				}
			}
			ran[s.language]++
			if s.isCall() {
				c.losesOne(t, &s, run(t, &s), proxy)
			}
		})
	}
	for language, least := range map[string]int{"python": 5, "go": 3, "toml": 1} {
		if ran[language] < least {
			t.Errorf("%d snippets of %s ran, not %d", ran[language], language, least)
		}
	}
	t.Log("ran, by language: ", ran)
}

// isCall says that the snippet is how one of the clients makes its call.
func (s *snippet) isCall() bool {
	return s.page == "clients.md" && !s.firstIsDown && strings.Contains(s.code, "user:42")
}

// losesOne runs the snippet once more, and loses the reply to its call. The settings of
// the page are such that it is not made again: it is charged once.
func (c *cluster) losesOne(t *testing.T, s *snippet, cmds []*exec.Cmd, p *lossy) {
	for _, cmd := range cmds {
		c.flush(c.nodes[2])
		p.arm()
		timer := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		out, err := cmd.CombinedOutput()
		if !timer.Stop() {
			t.Errorf("with a lost reply it does not end:\n%s", s.code)
		}
		if !p.disarm() {
			t.Errorf("no reply was lost:\n%s", s.code)
		}
		used := 2*int64(16) - c.nodes[2].r.mustThrottle("user:42", 15, 16, 86400, 0)[2]
		v, peeked := c.nodes[2].r.Do(context.Background(), "RL.PEEK", "user:42", "16/1d").Int64Slice()
		if peeked != nil {
			t.Fatal(peeked)
		}
		if used -= v[2]; used != 1 {
			t.Errorf("a call whose reply was lost is charged %d times, with what the page sets:\n%s\n%s%v", used, s.code, out, err)
		}
	}
}

// awaitAnswer waits until a node decides.
func awaitAnswer(t *testing.T, address string) {
	t.Helper()
	r := dial(t, address)
	eventually(t, 10*time.Second, address+" answers", func() bool {
		_, err := r.throttle("limitd:ready", 0, 1, 1, 0)
		return err == nil
	})
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// languages make the commands that run a snippet, one for each version of its library.
// Python and go-redis are needed by all tests; what else is missing is skipped.
var languages = map[string]func(*testing.T, *snippet) []*exec.Cmd{
	"python": func(t *testing.T, s *snippet) []*exec.Cmd {
		return []*exec.Cmd{exec.Command(tools.python, "-c", s.code)}
	},
	"go":     goProgram,
	"js":     jsProgram,
	"php":    phpProgram,
	"ruby":   interpreted("ruby", "redis", "%s", "-e", "require 'redis'"),
	"perl":   interpreted("perl", "Redis", "%s", "-e", "use Redis"),
	"lua":    interpreted("lua5.1", "redis", "%s", "-e", "require 'redis'"),
	"erlang": interpreted("escript", "eredis", "#!/usr/bin/env escript\nmain(_) ->\n%s"),
	"c":      cProgram,
	"toml": func(t *testing.T, s *snippet) []*exec.Cmd {
		return []*exec.Cmd{exec.Command(tools.limitd, "config", "check", file(t, "cluster.toml", s.code))}
	},
	"haproxy": func(t *testing.T, s *snippet) []*exec.Cmd {
		return []*exec.Cmd{exec.Command(needs(t, "haproxy"), "-c", "-f", file(t, "haproxy.cfg", s.code))}
	},
}

// file writes a file to be run.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// needs finds a program, or skips what needs it.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	return path
}

// interpreted makes a runner for an interpreter, which must pass the probe.
func interpreted(program, library, frame string, probe ...string) func(*testing.T, *snippet) []*exec.Cmd {
	return func(t *testing.T, s *snippet) []*exec.Cmd {
		path := needs(t, program)
		if probe != nil {
			if out, err := exec.Command(path, probe...).CombinedOutput(); err != nil {
				t.Skipf("NOT TESTED: %s has no library %s: %s", program, library, out)
			}
		}
		return []*exec.Cmd{exec.Command(path, file(t, "snippet", fmt.Sprintf(frame, s.code)))}
	}
}

func phpProgram(t *testing.T, s *snippet) []*exec.Cmd {
	php, frame := needs(t, "php"), "<?php\n%s"
	class := "Redis"
	if strings.Contains(s.code, "Predis") {
		class, frame = "Predis\\Client", "<?php\n@include 'Predis/autoload.php';\n%s"
	}
	if exec.Command(php, file(t, "probe.php", fmt.Sprintf(frame, fmt.Sprintf("exit(class_exists('%s') ? 0 : 1);", class)))).Run() != nil {
		t.Skipf("NOT TESTED: PHP has no class %s", class)
	}
	return []*exec.Cmd{exec.Command(php, file(t, "snippet.php", fmt.Sprintf(frame, s.code)))}
}

func cProgram(t *testing.T, s *snippet) []*exec.Cmd {
	source := file(t, "snippet.c", "#include <hiredis/hiredis.h>\n#include <stdio.h>\nint main(void) {\n"+s.code+"}\n")
	bin := filepath.Join(t.TempDir(), "snippet")
	if out, err := exec.Command(needs(t, "cc"), "-Wall", "-o", bin, source, "-lhiredis").CombinedOutput(); err != nil {
		if strings.Contains(string(out), "hiredis.h: No such file") {
			t.Skip("NOT TESTED: libhiredis-dev is missing")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	return []*exec.Cmd{exec.Command(bin)}
}

// Where ../clients keeps the versions of the packages of Node.js.
var jsPackages = map[string][]string{
	"redis":                {"redis4", "redis6"},
	"ioredis":              {"ioredis5", "ioredis6"},
	"iovalkey":             {"iovalkey"},
	"@valkey/valkey-glide": {"@valkey/valkey-glide"},
}

func jsProgram(t *testing.T, s *snippet) (cmds []*exec.Cmd) {
	node := needs(t, "node")
	m := regexp.MustCompile(`from '(.*)'`).FindStringSubmatch(s.code)
	if m == nil || jsPackages[m[1]] == nil {
		t.Fatalf("imports none of %v", jsPackages)
	}
	installed, _ := filepath.Abs("../clients/node/node_modules")
	for _, version := range jsPackages[m[1]] {
		if _, err := os.Stat(filepath.Join(installed, version)); err != nil {
			t.Skipf("NOT TESTED: %v (make clients installs it)", err)
		}
		program := file(t, "snippet.mjs", s.code+"\nprocess.exit(0);\n")
		link := filepath.Join(filepath.Dir(program), "node_modules", m[1])
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(installed, version), link); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, exec.Command(node, program))
	}
	return cmds
}
