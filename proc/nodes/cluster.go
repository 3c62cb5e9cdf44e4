// Package nodes runs three limitd nodes on loopback as processes, for those who ask the
// built binary: it writes their configuration, starts them, waits until they answer, finds
// their leader and stops them. What is in the configuration, and what is asked of
// the nodes, is up to who runs them.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"limitd/proc"
)

// Patience bounds every wait for nodes to answer.
const Patience = 60 * time.Second

// Config says what cluster there is to be.
type Config struct {
	Dir      string // of configuration, data and logs; it is made if it is not there
	Program  string // limitd
	Settings string // TOML that stands before the nodes in their configuration; empty: the defaults
	Password string // of the nodes' clients; empty: none

	Args func(*Node) []string // more arguments of serve; nil: none
}

// Cluster is three nodes: n1, n2 and n3.
type Cluster struct {
	Config
	Nodes []*Node
	file  string // configuration
}

// New writes the configuration of three nodes, of which none is started.
func New(c Config) (*Cluster, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	addrs, err := proc.FreeAddrs(6)
	if err != nil {
		return nil, err
	}
	all := &Cluster{Config: c, file: filepath.Join(c.Dir, "cluster.toml")}
	var text strings.Builder
	text.WriteString(c.Settings)
	for i := range 3 {
		n := all.node(fmt.Sprintf("n%d", i+1), addrs[i], addrs[3+i])
		all.Nodes = append(all.Nodes, n)
		fmt.Fprintf(&text, "[[node]]\nid = %q\nresp = %q\npeer = %q\ndata = %q\n\n", n.ID, n.Addr, n.Peer, n.Data)
	}
	return all, os.WriteFile(all.file, []byte(text.String()), 0o600)
}

// Another makes a node that is not in the configuration. Who asked for it starts it.
func (c *Cluster) Another(id string) (*Node, error) {
	addrs, err := proc.FreeAddrs(2)
	if err != nil {
		return nil, err
	}
	return c.node(id, addrs[0], addrs[1]), nil
}

func (c *Cluster) node(id, addr, peer string) *Node {
	return &Node{ID: id, Addr: addr, Peer: peer, Data: filepath.Join(c.Dir, id), Client: NewClient(addr, c.Password), log: filepath.Join(c.Dir, id+".log")}
}

// Start starts every node that does not run, and returns the leader when all are
// ready ([Cluster.AwaitReady]).
func (c *Cluster) Start(ctx context.Context) (leader *Node, err error) {
	if err := c.Launch(); err != nil {
		return nil, err
	}
	return c.AwaitReady(ctx)
}

// Launch starts every node that does not run, and waits for nothing.
func (c *Cluster) Launch() error {
	for _, n := range c.Nodes {
		if n.Running() {
			continue
		}
		if err := c.StartNode(n); err != nil {
			return err
		}
	}
	return nil
}

// StartNode starts a node of the configuration that does not run.
func (c *Cluster) StartNode(n *Node) error {
	args := []string{"--config", c.file, "--node", n.ID}
	if c.Args != nil {
		args = append(args, c.Args(n)...)
	}
	return n.Serve(c.Program, args...)
}

// AwaitReady waits until every node answers a call that needs the leader, all agree
// who that is, and none lags behind. It returns the leader. All nodes must have been
// started; that one has died since is an error.
func (c *Cluster) AwaitReady(ctx context.Context) (leader *Node, err error) {
	return c.await(ctx, c.Nodes, true)
}

// AwaitAnswers waits until the nodes that run answer a call that needs the leader, and
// agree who that is.
func (c *Cluster) AwaitAnswers(ctx context.Context) error {
	_, err := c.await(ctx, slices.DeleteFunc(slices.Clone(c.Nodes), func(n *Node) bool { return !n.Running() }), false)
	return err
}

func (c *Cluster) await(ctx context.Context, nodes []*Node, level bool) (leader *Node, err error) {
	err = proc.Await(ctx, "cluster not ready", Patience, func(ctx context.Context) (err error) {
		if leader, err = c.Leader(ctx); err != nil {
			return err
		}
		for _, n := range nodes {
			if err := n.Client.Do(ctx, "CL.THROTTLE", "nodes:ready", 0, 1, 1, 0).Err(); err != nil {
				return fmt.Errorf("%s: %w", n.ID, err)
			}
		}
		top, err := leader.Info(ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			switch i, err := n.Info(ctx); {
			case err != nil:
				return err
			case i["raft_leader_id"] != leader.ID:
				return fmt.Errorf("%s does not follow the leader %s", n.ID, leader.ID)
			case level && i["raft_last_batch"] != top["raft_last_batch"]:
				return fmt.Errorf("%s is not level with the leader %s", n.ID, leader.ID)
			}
		}
		return nil
	}, procs(nodes)...)
	return leader, err
}

// Procs are the processes of the nodes, which have all been started.
func (c *Cluster) Procs() []*proc.Process { return procs(c.Nodes) }

func procs(nodes []*Node) []*proc.Process {
	all := make([]*proc.Process, len(nodes))
	for i, n := range nodes {
		all[i] = n.Proc
	}
	return all
}

// Leader asks the running nodes which of them leads.
func (c *Cluster) Leader(ctx context.Context) (*Node, error) {
	for _, n := range c.Nodes {
		if i, err := n.Info(ctx); err == nil && i["raft_role"] == "leader" {
			return n, nil
		}
	}
	return nil, errors.New("no node says that it leads")
}

// Other returns the first node that is not n.
func (c *Cluster) Other(n *Node) *Node {
	if n == c.Nodes[0] {
		return c.Nodes[1]
	}
	return c.Nodes[0]
}

// Stop ends the nodes that run: followers first, so that no leader hands over to a node
// that is about to go. It asks them who leads even if the caller's time is up.
func (c *Cluster) Stop() error {
	leader, _ := c.Leader(context.Background()) // nil: any order will do
	var errs []error
	for _, last := range []bool{false, true} {
		for _, n := range c.Nodes {
			if n.Running() && (n == leader) == last {
				errs = append(errs, n.Stop())
			}
		}
	}
	return errors.Join(errs...)
}
