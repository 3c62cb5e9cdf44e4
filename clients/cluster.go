package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// readyPatience bounds every wait for nodes to answer.
const readyPatience = 60 * time.Second

// The passwords of the cluster that has some.
var (
	byPassword = login{password: "sekret"}
	byUser     = login{user: "app", password: "sekret2"}
)

// passwords is for the cells that have some.
const passwords = `requirepass = "sekret"

[[user]]
name = "app"
password = "sekret2"
commands = ["limit", "read", "admin"]
keys = ["*"]

`

// node is one limitd process and a client of it.
type node struct {
	id, addr, peer, data string
	log                  string
	proc                 *process // nil: never started
	client               *redis.Client
}

// host and port are where clients connect.
func (n *node) host() string { host, _, _ := net.SplitHostPort(n.addr); return host }
func (n *node) port() string { _, port, _ := net.SplitHostPort(n.addr); return port }

// patient is for the cells without a fault: a busy machine must not look like a
// dead leader there, for then every call has to be answered.
const patient = `[raft]
heartbeat = "10s"
election = "10s"
lease = "10s"

[limits]
request_timeout = "20s"
leader_wait = "20s"

`

// cluster is three nodes on loopback, of the shipped defaults but for some settings.
type cluster struct {
	program, file string
	nodes         []*node
}

func newCluster(dir, program, settings string) (*cluster, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(6)
	if err != nil {
		return nil, err
	}
	c := &cluster{program: program, file: filepath.Join(dir, "cluster.toml")}
	var text strings.Builder
	text.WriteString(settings)
	var as login
	if strings.Contains(settings, passwords) {
		as = byPassword
	}
	for i := range 3 {
		id := fmt.Sprintf("n%d", i+1)
		n := &node{id: id, addr: addrs[i], peer: addrs[3+i], data: filepath.Join(dir, id), log: filepath.Join(dir, id+".log")}
		n.client = newAdmin(n.addr, as)
		c.nodes = append(c.nodes, n)
		fmt.Fprintf(&text, "[[node]]\nid = %q\nresp = %q\npeer = %q\ndata = %q\n\n", n.id, n.addr, n.peer, n.data)
	}
	return c, os.WriteFile(c.file, []byte(text.String()), 0o600)
}

// newAdmin is the client that looks at a node. It repeats nothing.
func newAdmin(addr string, as login) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: as.user, Password: as.password,
		Protocol:        2,
		DisableIdentity: true,
		MaxRetries:      -1,
		DialTimeout:     2 * time.Second,
		DialerRetries:   1,
		ReadTimeout:     10 * time.Second,
		WriteTimeout:    10 * time.Second,
	})
}

// start starts every node that does not run, and waits until all answer.
func (c *cluster) start(ctx context.Context) error {
	for _, n := range c.nodes {
		if n.proc == nil || !n.proc.running() {
			var err error
			if n.proc, err = startProcess(n.log, c.program, "serve", "--config", c.file, "--node", n.id); err != nil {
				return err
			}
		}
	}
	return c.awaitReady(ctx)
}

// awaitReady waits until the nodes that run answer a call that needs the leader,
// and agree who that is.
func (c *cluster) awaitReady(ctx context.Context) error {
	var procs []*process
	var nodes []*node
	for _, n := range c.nodes {
		if n.proc.running() {
			procs, nodes = append(procs, n.proc), append(nodes, n)
		}
	}
	return await(ctx, "cluster not ready", readyPatience, func(ctx context.Context) error {
		leader, err := c.leader(ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if err := n.client.Do(ctx, "CL.THROTTLE", "clients:ready", 0, 1, 1, 0).Err(); err != nil {
				return fmt.Errorf("%s: %w", n.id, err)
			}
			if i, err := n.info(ctx); err != nil {
				return err
			} else if i["raft_leader_id"] != leader.id {
				return fmt.Errorf("%s does not follow the leader %s", n.id, leader.id)
			}
		}
		return nil
	}, procs...)
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

// other returns a node that is none of these.
func (c *cluster) other(not ...*node) *node {
	for _, n := range c.nodes {
		taken := false
		for _, t := range not {
			taken = taken || n == t
		}
		if !taken {
			return n
		}
	}
	return nil
}

// transfer hands leadership to a node, and returns when all follow it.
func (c *cluster) transfer(ctx context.Context, to *node) error {
	return await(ctx, "hand leadership to "+to.id, readyPatience, func(ctx context.Context) error {
		leader, err := c.leader(ctx)
		if err != nil {
			return err
		}
		if leader != to {
			if err := leader.client.Do(ctx, "RL.CLUSTER", "TRANSFER", to.id).Err(); err != nil {
				return err
			}
			return fmt.Errorf("%s leads", leader.id)
		}
		return c.awaitReady(ctx)
	})
}

// stop ends the nodes that run: followers first, so that no leader hands over
// to a node that is about to go.
func (c *cluster) stop() error {
	leader, _ := c.leader(context.Background()) // nil: any order will do
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
	text, err := n.client.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			fields[name] = value
		}
	}
	return fields, nil
}
