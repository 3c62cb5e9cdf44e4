package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

// tools are what TestMain found or built.
var tools struct {
	limitd   string // the binary under test
	redisCLI string
	python   string // a python3 that can import redis
}

func TestMain(m *testing.M) {
	logging.Disable()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "limitd-e2e-")
		if err == nil {
			defer os.RemoveAll(dir)
			err = prepare(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		return m.Run()
	}())
}

func prepare(dir string) error {
	tools.limitd = filepath.Join(dir, "limitd")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", tools.limitd, "limitd/cmd/limitd")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build limitd: %w\n%s", err, out)
	}
	var err error
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
