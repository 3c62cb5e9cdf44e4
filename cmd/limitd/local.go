package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// localReady bounds how long `limitd local` waits for its nodes.
const localReady = 60 * time.Second

// local is a cluster of child processes on this machine.
type local struct {
	out      io.Writer
	self     string // this program, to start children with
	dir      string
	file     string // <dir>/cluster.toml
	children []*child
	exited   chan *child
}

func newLocal() *cobra.Command {
	var nodes, port int
	var dir string
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Run a cluster of several nodes on this machine",
		Long: `Run a cluster on this machine: one process per node, each with its own data
directory, until Ctrl-C. The data stay, and the next run continues with them.

The configuration is DIRECTORY/cluster.toml, the log of node n2 DIRECTORY/n2.log.
A node that died is not started again; the line that does it is printed.`,
		Example: `  limitd local
  limitd local --nodes 5 --port 9001 --dir ./five`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := localConfig(dir, nodes, port)
			if err != nil {
				return err
			}
			l, err := prepareLocal(cfg, dir)
			if err != nil {
				return err
			}
			l.out = cmd.OutOrStdout()
			return l.run(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&nodes, "nodes", 3, "how `MANY` nodes")
	cmd.Flags().StringVar(&dir, "dir", "limitd-local", "`DIRECTORY` for data, logs and cluster.toml")
	cmd.Flags().IntVar(&port, "port", 6381, "client `PORT` of the first node; peers use this port + 1000")
	return cmd
}

// prepareLocal writes the directory and its cluster.toml.
func prepareLocal(cfg Config, dir string) (*local, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	l := &local{self: self, dir: dir, file: filepath.Join(dir, "cluster.toml"), exited: make(chan *child, len(cfg.Nodes))}
	if err := keepLocalFile(l.file, localFile(cfg)); err != nil {
		return nil, err
	}
	for _, n := range cfg.Nodes {
		l.children = append(l.children, &child{node: n, log: filepath.Join(dir, n.ID+".log")})
	}
	return l, nil
}

// run starts the children, says how to talk to them, and stops them on a signal.
func (l *local) run(ctx context.Context) error {
	// The kernel ends a child when the thread that started it ends, so this
	// goroutine keeps its thread until all children are gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	fmt.Fprintf(l.out, "Starting %d nodes; data and logs in %s\n", len(l.children), l.dir)
	for _, c := range l.children {
		if err := c.start(l.self, l.file, l.exited); err != nil {
			return errors.Join(err, l.stop(signals))
		}
	}
	if err := l.awaitAll(ctx, signals); err != nil {
		return errors.Join(err, l.stop(signals))
	}
	if l.running() == len(l.children) {
		l.announce()
	}
	for l.running() > 0 {
		select {
		case <-ctx.Done():
			return l.stop(signals)
		case <-signals:
			fmt.Fprintln(l.out, "Stopping all nodes")
			return l.stop(signals)
		case c := <-l.exited:
			c.exitSeen = true
			fmt.Fprintf(l.out, "%s (pid %d) has died: %s. Its log is %s. Start it again in another terminal:\n  %s\n",
				c.node.ID, c.pid(), c.end(), c.log, l.startLine(c))
		}
	}
	return errors.New("all nodes have died")
}

// awaitAll returns when every node answers; a signal or a node that dies ends the wait with an error.
func (l *local) awaitAll(ctx context.Context, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, localReady)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		for _, c := range l.children {
			if err := c.awaitAnswer(ctx); err != nil {
				answered <- fmt.Errorf("%s does not answer; its log is %s: %w", c.node.ID, c.log, err)
				return
			}
		}
		answered <- nil
	}()
	select {
	case err := <-answered:
		return err
	case sig := <-signals:
		return fmt.Errorf("stopped while starting (%v)", sig)
	case c := <-l.exited:
		c.exitSeen = true
		return fmt.Errorf("%s has died while starting: %s; its log %s ends with:\n%s", c.node.ID, c.end(), c.log, c.logEnd())
	}
}

// announce says how to talk to the nodes.
func (l *local) announce() {
	for _, c := range l.children {
		fmt.Fprintf(l.out, "  %s  %s  pid %d\n", c.node.ID, c.node.RESP, c.pid())
	}
	port := l.children[min(1, len(l.children)-1)].node.RESP
	port = port[strings.LastIndexByte(port, ':')+1:]
	fmt.Fprintf(l.out, "All nodes answer. Try:\n  redis-cli -p %s CL.THROTTLE user:42 15 16 86400\n", port)
	fmt.Fprintln(l.out, "Ctrl-C stops them all.")
}

// startLine is what a person pastes to start a dead node again.
func (l *local) startLine(c *child) string {
	return strings.Join([]string{shellWord(shortPath(l.self)), "serve", "--config", shellWord(l.file), "--node", c.node.ID}, " ")
}

func (l *local) running() int {
	n := 0
	for _, c := range l.children {
		if c.cmd != nil && !c.exitSeen {
			n++
		}
	}
	return n
}

// stop asks each running child to stop, each by its pid, and waits; a signal
// meanwhile, or too long a wait, kills what is left.
func (l *local) stop(signals <-chan os.Signal) error {
	l.signal(syscall.SIGTERM)
	patience := time.After(grace + drainTime + 6*time.Second)
	var err error
	for l.running() > 0 {
		select {
		case c := <-l.exited:
			c.exitSeen = true
			if !c.state().Success() {
				err = errors.Join(err, fmt.Errorf("%s (pid %d) did not stop cleanly: %s; its log is %s", c.node.ID, c.pid(), c.end(), c.log))
			}
		case <-signals:
			l.signal(syscall.SIGKILL)
		case <-patience:
			l.signal(syscall.SIGKILL)
		}
	}
	return err
}

func (l *local) signal(sig syscall.Signal) {
	for _, c := range l.children {
		if c.cmd != nil && !c.exitSeen {
			c.cmd.Process.Signal(sig) // a child that has just gone is reported by exited
		}
	}
}
