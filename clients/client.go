package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// client is one row of the table: a library, and how its driver is started.
type client struct {
	name string
	// The driver; "bin/" stands for the directory of what was built. The four
	// arguments of the protocol are appended.
	driver []string
	noUser bool // cannot log in as a named user
	// Its pipeline tells only that all was answered: the server says what was charged.
	blindPipe bool
	// Is a load generator, which counts nothing, and stops at the first error
	// (benchmark.go). It has no driver.
	generator bool
}

func clients() []*client {
	node := func(driver, library string) []string {
		return []string{"node", "clients/node/" + driver + ".mjs", library}
	}
	return []*client{
		{name: "redis-cli", driver: []string{"clients/debian/redis-cli.sh"}, blindPipe: true},
		{name: "redis-cli -3", driver: []string{"clients/debian/redis-cli.sh", "-3"}, blindPipe: true},
		{name: "redis-benchmark", generator: true},
		{name: "redis-py", driver: []string{"/usr/bin/python3", "clients/debian/redis-py.py"}},
		{name: "go-redis", driver: []string{"bin/goredis"}},
		{name: "rueidis", driver: []string{"bin/rueidis"}},
		{name: "redigo", driver: []string{"bin/redigo"}},
		{name: "radix", driver: []string{"bin/radix"}},
		{name: "node-redis 4", driver: node("node-redis", "redis4")},
		{name: "node-redis 6", driver: node("node-redis", "redis6")},
		{name: "ioredis 5", driver: node("ioredis", "ioredis5")},
		{name: "ioredis 6", driver: node("ioredis", "ioredis6")},
		{name: "iovalkey", driver: node("ioredis", "iovalkey")},
		{name: "valkey-glide", driver: node("glide", "@valkey/valkey-glide")},
		{name: "phpredis", driver: []string{"php", "clients/debian/phpredis.php"}},
		{name: "redis-rb", driver: []string{"ruby", "clients/debian/redis-rb.rb"}},
		{name: "hiredis", driver: []string{"bin/hiredis"}},
		{name: "Redis.pm", driver: []string{"perl", "clients/debian/redis.pl"}},
		{name: "lua-redis", driver: []string{"lua5.1", "clients/debian/lua-redis.lua"}},
		{name: "eredis", driver: []string{"escript", "clients/debian/eredis.escript"}, noUser: true},
	}
}

// build makes limitd, if it is ours that runs, the drivers that are compiled, and the packages of Node.js.
func build(ctx context.Context, dir string, ours bool) error {
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	steps := [][]string{
		{"go", "build", "-C", "clients/go", "-o", bin + "/", "./..."},
		{"cc", "-O1", "-Wall", "-Wextra", "-o", filepath.Join(bin, "hiredis"), "clients/debian/hiredis.c", "-lhiredis"},
		{"npm", "ci", "--prefix", "clients/node", "--no-audit", "--no-fund", "--loglevel=error"},
	}
	if ours {
		steps = append(steps, []string{"go", "build", "-o", bin + "/", "./cmd/limitd"})
	}
	var errs []error
	for _, step := range steps {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("%v: %w\n%s", step, err, out))
		}
	}
	if errs != nil {
		return fmt.Errorf("%w\n(run this in the root of the module; clients/README.md lists what must be installed)", errors.Join(errs...))
	}
	return nil
}
