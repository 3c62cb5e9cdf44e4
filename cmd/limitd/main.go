// Command limitd is a rate limiter that Redis clients talk to.
//
// It is one binary with two sides. `limitd serve` runs one node of a cluster,
// `limitd local` a whole cluster on this machine. The other verbs are clients:
// they speak RESP to a running node, as any Redis client could.
//
// This package only connects: flags and the configuration file (config*.go)
// become the configurations of the rooms below, serve.go and server.go open
// them in order and close them in the opposite order, and each verb has a file
// of its own. Nothing here decides, agrees or stores.
//
// Exit codes, the same for every verb: 0 allowed or done, 1 denied, 2 an error,
// 3 the node stopped itself because going on would not have been safe.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
)

const (
	exitOK     = 0
	exitDenied = 1
	exitError  = 2
	exitFatal  = 3
)

// errDenied ends `limitd throttle` on a denial: an answer, not a failure, so
// nothing is printed for it.
var errDenied = errors.New("denied")

// fatalError is why a node stopped itself (fail-stop).
type fatalError struct{ reason error }

func (e *fatalError) Error() string { return e.reason.Error() }
func (e *fatalError) Unwrap() error { return e.reason }

func main() {
	logging.Disable() // the client library's: its errors are returned too
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(quantityIsNoFlag(args))
	root.SetOut(stdout)
	log := &logWriter{w: stderr}
	root.SetErr(log)
	err := root.ExecuteContext(ctx)
	log.end()
	var fatal *fatalError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errDenied):
		return exitDenied
	case errors.As(err, &fatal):
		fmt.Fprintf(stderr, "limitd: this node has stopped itself: %v\n", fatal)
		return exitFatal
	default:
		fmt.Fprintf(stderr, "limitd: %v\n", err)
		return exitError
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "limitd",
		Short: "A rate limiter that Redis clients talk to",
		Long: `limitd answers CL.THROTTLE exactly, on one node or on three that agree.

Start a single durable node:          limitd serve
Start three nodes on this machine:    limitd local
Ask:                                  redis-cli -p 6380 CL.THROTTLE user:42 15 16 86400
Read what a limit does, and try it:   limitd explain 100/1m

Exit codes: 0 allowed or done, 1 denied, 2 error, 3 the node stopped itself.`,
		Args:          cobra.NoArgs,
		RunE:          showHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newServe(),
		newLocal(),
		newCluster(),
		newTake(),
		newThrottle(),
		newSimulate(),
		newSnapshot(),
		newRecover(),
		newMigrateLog(),
		newConfig(),
		newExplain(),
		newVersion(),
	)
	return root
}

// showHelp is what a command does that only holds others. It makes the command
// runnable, and so its cobra.NoArgs refuses verbs that do not exist.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }
