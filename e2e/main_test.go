package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

// tools are what TestMain found or built.
var tools struct {
	dir      string // of what is built
	limitd   string // the binary under test
	redisCLI string
	python   string // a python3 that can import redis
}

func TestMain(m *testing.M) {
	logging.Disable()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "limitd-e2e-")
		stop := make(chan struct{})
		defer close(stop)
		if err == nil {
			defer os.RemoveAll(dir)
			err = prepare(dir)
		}
		if err == nil {
			err = machine.watch(dir, stop)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		return m.Run()
	}())
}

func prepare(dir string) (err error) {
	tools.dir = dir
	if tools.limitd, err = build(""); err != nil {
		return err
	}
	if tools.redisCLI, err = exec.LookPath("redis-cli"); err != nil {
		return fmt.Errorf("redis-cli is missing, and the tests need it: apt-get install redis-tools (%w)", err)
	}
	for _, python := range []string{"/usr/bin/python3", "python3"} { // Debian's package serves Debian's python
		if exec.Command(python, "-c", "import redis").Run() == nil {
			tools.python = python
			return nil
		}
	}
	return fmt.Errorf("no python3 can import redis, and the tests need it: apt-get install python3-redis")
}

var builds struct {
	sync.Mutex
	done map[string]string // path by tag
}

// build builds limitd with a build tag, or with none, once.
func build(tag string) (bin string, err error) {
	builds.Lock()
	defer builds.Unlock()
	if bin = builds.done[tag]; bin != "" {
		return bin, nil
	}
	bin = filepath.Join(tools.dir, strings.TrimSuffix("limitd-"+tag, "-"))
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-tags", tag, "-o", bin, "limitd/cmd/limitd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build limitd with the tag %q: %w\n%s", tag, err, out)
	}
	if builds.done == nil {
		builds.done = map[string]string{}
	}
	builds.done[tag] = bin
	return bin, nil
}

// buildWith builds limitd with a build tag.
func buildWith(t testing.TB, tag string) string {
	t.Helper()
	bin, err := build(tag)
	if err != nil {
		t.Fatal(err)
	}
	return bin
}
