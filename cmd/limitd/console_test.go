package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the commands print now into the files that show it")

// asLimitd makes the test binary limitd itself, for the shell that types commands.
const asLimitd = "LIMITD_TEST_IS_LIMITD"

func TestMain(m *testing.M) {
	if os.Getenv(asLimitd) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestConsoleFiles types the commands of testdata/*.console, and looks that they
// print what stands there.
func TestConsoleFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.console")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			text := readFile(t, f)
			compare(t, f, text, newConsole(t).retype(text))
		})
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// compare compares a file with what it should be, and writes it under -update.
func compare(t *testing.T, file, text, now string) {
	t.Helper()
	if text == now {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, is := strings.Split(text, "\n"), strings.Split(now, "\n")
	for i := range was {
		if i >= len(is) || was[i] != is[i] {
			t.Fatalf("%s:%d shows\n%s\nbut limitd prints\n%s\n(go test -update writes it)",
				file, i+1, was[i], strings.Join(is[min(i, len(is)):min(i+5, len(is))], "\n"))
		}
	}
	t.Fatalf("%s ends too early: limitd prints more", file)
}

// console is a shell with limitd in its path.
type console struct {
	t        *testing.T
	bin, dir string // dir: where it stands
}

func newConsole(t *testing.T) *console {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, bin: t.TempDir(), dir: t.TempDir()}
	script := "#!/bin/sh\n" + asLimitd + "=1 exec " + self + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(c.bin, "limitd"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return c
}

// retype runs each command of a transcript, and returns the transcript with what the
// commands print now. A command is a line "$ ..." and the lines "> ..." behind it;
// what follows is its output.
func (c *console) retype(text string) string {
	var now, command strings.Builder
	run := func() {
		if command.Len() > 0 {
			now.WriteString(c.run(command.String()))
			command.Reset()
		}
	}
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "$ "):
			run()
			command.WriteString(line[2:])
		case line[0] == '>' && command.Len() > 0:
			command.WriteString(strings.TrimPrefix(line[1:], " "))
		default:
			continue
		}
		now.WriteString(line)
	}
	run()
	return now.String()
}

func (c *console) run(command string) string {
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "PATH="+c.bin+":"+os.Getenv("PATH"), "LC_ALL=C", "TZ=America/New_York")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if _, exited := err.(*exec.ExitError); !exited {
			c.t.Fatal(err)
		}
	}
	return out.String()
}
