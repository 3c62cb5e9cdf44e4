package nodes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"limitd/proc"
)

// Node is one limitd process and a client of it.
type Node struct {
	ID     string
	Addr   string        // for clients, host:port
	Peer   string        // for other nodes
	Data   string        // directory
	Proc   *proc.Process // the newest; nil: never started
	Client *redis.Client // NewClient

	log string
}

// Serve starts the node, which must not run: `limitd serve` with these arguments.
func (n *Node) Serve(program string, args ...string) (err error) {
	if n.Running() {
		return fmt.Errorf("%s runs already (pid %d)", n.ID, n.Proc.PID())
	}
	n.Proc, err = proc.Start(n.ID, n.log, nil, program, append([]string{"serve"}, args...)...)
	return err
}

// Running says that the node was started and has not ended.
func (n *Node) Running() bool { return n.Proc != nil && n.Proc.Running() }

// Kill and Stop are those of the newest process, whenever they are called.
func (n *Node) Kill() error { return n.Proc.Kill() }
func (n *Node) Stop() error { return n.Proc.Stop() }

// Info is INFO as names and values, of a node that runs.
func (n *Node) Info(ctx context.Context) (map[string]string, error) {
	if !n.Running() {
		return nil, fmt.Errorf("%s does not run", n.ID)
	}
	return Info(ctx, n.Client)
}

// Info is INFO of a server, or these sections of it, as names and values.
func Info(ctx context.Context, client *redis.Client, sections ...string) (map[string]string, error) {
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

// NewClient never repeats a call: it could be charged twice, and who runs nodes counts
// the calls. Nor does it repeat a dial: who waits for a node looks often enough by himself.
// An empty password is none.
func NewClient(addr, password string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:            addr,
		Password:        password,
		Protocol:        2,
		DisableIdentity: true,
		MaxRetries:      -1,
		DialTimeout:     2 * time.Second,
		DialerRetries:   1,
		ReadTimeout:     30 * time.Second,
		WriteTimeout:    30 * time.Second,
	})
}
