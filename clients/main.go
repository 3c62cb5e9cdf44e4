// Command clients runs real, unmodified Redis clients against three real nodes of
// limitd, breaks the nodes under them, and counts what each client was allowed. It
// is `make clients` and, with fewer kills, `make clients-ci`, and runs in the root
// of the module.
//
// A cell of its table is one client at one task (cells.go). A limit of L is asked
// 3·L times, and a cell is green only if the client itself counted what it should:
// exactly L without a fault, and across a fault what count.go says. Afterwards the
// server must have nothing left, so that the count is of all there was.
//
// clients/README.md tells how the clients are driven, and how to add one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// runPatience bounds the whole run.
const runPatience = 20 * time.Minute

type options struct {
	only      string
	kills     int
	limit     int
	pipelined int
	write     string
	limitd    string
	keep      bool
	errors    bool
}

func main() {
	// The kernel ends the nodes with the thread that started them: stay on it.
	runtime.LockOSThread()
	logging.Disable() // go-redis reports each dial to a node that is down, and here nodes are killed
	var o options
	flag.StringVar(&o.only, "only", "", "comma-separated names of the `CLIENTS` to run; all without it")
	flag.IntVar(&o.kills, "kills", 5, "kills of the leader")
	flag.IntVar(&o.limit, "limit", 100, "the limit that each key has")
	flag.IntVar(&o.pipelined, "pipelined", 1000, "calls in a pipeline")
	flag.StringVar(&o.limitd, "limitd", "", "run this `PROGRAM` instead of building ./cmd/limitd")
	flag.StringVar(&o.write, "write", "", "put the table into this `FILE`, between its markers")
	flag.BoolVar(&o.keep, "keep", false, "keep the directory with configuration, data and logs, and print its path")
	flag.BoolVar(&o.errors, "errors", false, "print the errors that each client saw in the cells with faults")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	err := run(ctx, o)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.kills < 1 || o.limit < 3*reserve || o.pipelined < 3 {
		return fmt.Errorf("-kills must be 1 or more, -limit %d or more, -pipelined 3 or more", 3*reserve)
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	if o.write != "" && o.only != "" {
		return errors.New("-write needs all clients: leave -only away")
	}
	dir, err := os.MkdirTemp("", "limitd-clients-")
	if err != nil {
		return err
	}
	defer func() {
		if o.keep {
			fmt.Println("kept:", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	began := time.Now()
	note := func(what string) { fmt.Printf("%5.0fs  %s\n", time.Since(began).Seconds(), what) }
	note("building")
	if err := build(ctx, dir, o.limitd == ""); err != nil {
		return err
	}
	if o.limitd == "" {
		o.limitd = filepath.Join(dir, "bin", "limitd")
	}
	m := newMatrix(o, dir, chosen, note)
	if err := m.run(ctx); err != nil {
		return err
	}
	note("done")
	text := m.table()
	fmt.Print("\n", text)
	if o.errors {
		fmt.Print("\n", m.surprises())
	}
	if failed := m.failures(); len(failed) > 0 {
		return fmt.Errorf("%d of the cells failed:\n\n%s", len(failed), strings.Join(failed, "\n\n"))
	}
	if o.write != "" {
		return writeTable(o.write, text)
	}
	return nil
}

// choose returns the clients of the given names.
func choose(names string) ([]*client, error) {
	all := clients()
	if names == "" {
		return all, nil
	}
	var chosen []*client
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(c *client) bool { return c.name == name })
		if i < 0 {
			known := make([]string, len(all))
			for i, c := range all {
				known[i] = c.name
			}
			return nil, fmt.Errorf("-only: no client %q, there are: %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
