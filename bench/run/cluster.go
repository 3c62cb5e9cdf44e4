package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// readyPatience bounds every wait for nodes to answer.
const readyPatience = 60 * time.Second

// node is one limitd process and a client of it.
type node struct {
	id, addr, peer, data string
	log                  string
	proc                 *process // nil: never started
	client               *redis.Client
}

// cluster is three nodes of the shipped defaults on loopback.
type cluster struct {
	program, file string
	profiled      bool // the nodes can be asked for profiles
	nodes         []*node
}

func newCluster(dir, program string) (*cluster, error) {
	return newClusterWith(dir, program, "")
}

// newClusterWith makes a cluster in dir whose configuration begins with settings.
func newClusterWith(dir, program, settings string) (*cluster, error) {
	addrs, err := freeAddrs(6)
	if err != nil {
		return nil, err
	}
	c := &cluster{program: program, file: filepath.Join(dir, "cluster.toml")}
	var text strings.Builder
	text.WriteString(settings)
	for i := range 3 {
		id := fmt.Sprintf("n%d", i+1)
		n := &node{id: id, addr: addrs[i], peer: addrs[3+i], data: filepath.Join(dir, id), log: filepath.Join(dir, id+".log")}
		n.client = newClient(n.addr)
		c.nodes = append(c.nodes, n)
		fmt.Fprintf(&text, "[[node]]\nid = %q\nresp = %q\npeer = %q\ndata = %q\n\n", n.id, n.addr, n.peer, n.data)
	}
	return c, os.WriteFile(c.file, []byte(text.String()), 0o600)
}

// newClient never repeats a call: it could be charged twice, and here every
// call counts. Nor does it repeat a dial: who waits for a node looks often
// enough by himself.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:            addr,
		Protocol:        2,
		DisableIdentity: true,
		MaxRetries:      -1,
		DialTimeout:     2 * time.Second,
		DialerRetries:   1,
		ReadTimeout:     30 * time.Second,
		WriteTimeout:    30 * time.Second,
	})
}

// start starts every node that does not run, and waits until all answer.
func (c *cluster) start(ctx context.Context) error {
	for _, n := range c.nodes {
		if n.proc == nil || !n.proc.running() {
			if err := c.startNode(n); err != nil {
				return err
			}
		}
	}
	return c.awaitReady(ctx)
}

func (c *cluster) startNode(n *node) (err error) {
	args := []string{"serve", "--config", c.file, "--node", n.id}
	if c.profiled {
		args = append(args, "--profiles", n.profiles())
	}
	n.proc, err = start(n.id, n.log, c.program, args...)
	return err
}

func (c *cluster) procs() []*process {
	procs := make([]*process, len(c.nodes))
	for i, n := range c.nodes {
		procs[i] = n.proc
	}
	return procs
}

// awaitReady waits until every node answers a call that needs the leader, all
// agree who that is, and none lags behind.
func (c *cluster) awaitReady(ctx context.Context) error {
	return await(ctx, "cluster not ready", readyPatience, func(ctx context.Context) error {
		for _, n := range c.nodes {
			if err := n.client.Do(ctx, "CL.THROTTLE", "bench:ready", 0, 1, 1, 0).Err(); err != nil {
				return fmt.Errorf("%s: %w", n.id, err)
			}
		}
		leader, err := c.leader(ctx)
		if err != nil {
			return err
		}
		top, err := leader.info(ctx)
		if err != nil {
			return err
		}
		for _, n := range c.nodes {
			if i, err := n.info(ctx); err != nil {
				return err
			} else if i["raft_leader_id"] != leader.id || i["raft_last_batch"] != top["raft_last_batch"] {
				return fmt.Errorf("%s is not level with the leader %s", n.id, leader.id)
			}
		}
		return nil
	}, c.procs()...)
}

// leader asks the running nodes which of them leads.
func (c *cluster) leader(ctx context.Context) (*node, error) {
	for _, n := range c.nodes {
		if i, err := n.info(ctx); err == nil && i["raft_role"] == "leader" {
			return n, nil
		}
	}
	return nil, errors.New("no node says that it leads")
}

// follower returns a node that is not n.
func (c *cluster) follower(n *node) *node {
	for _, f := range c.nodes {
		if f != n {
			return f
		}
	}
	return nil
}

// stop ends the nodes that run: followers first, so that no leader hands over
// to a node that is about to go.
func (c *cluster) stop(ctx context.Context) error {
	leader, _ := c.leader(ctx) // nil: any order will do
	var errs []error
	for _, last := range []bool{false, true} {
		for _, n := range c.nodes {
			if n.proc != nil && n.proc.running() && (n == leader) == last {
				errs = append(errs, n.proc.stop())
			}
		}
	}
	return errors.Join(errs...)
}

// info is INFO as names and values.
func (n *node) info(ctx context.Context) (map[string]string, error) {
	if n.proc == nil || !n.proc.running() {
		return nil, fmt.Errorf("%s does not run", n.id)
	}
	return info(ctx, n.client)
}

func info(ctx context.Context, client *redis.Client, sections ...string) (map[string]string, error) {
	text, err := client.Info(ctx, sections...).Result()
	if err != nil {
		return nil, err
	}
	return parseInfo(text), nil
}

func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			fields[name] = value
		}
	}
	return fields
}
