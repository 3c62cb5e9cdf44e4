package workload

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Times for which clients wait.
const (
	patience  = 3 * time.Second // for a reply: longer than a node promises to take for one
	impatient = time.Second     // for what a node says of itself, and for a connection
)

// Dialer connects to a node as a client.
type Dialer func(node string, timeout time.Duration) (net.Conn, error)

// Ask sends one command to a node on a connection of its own, and waits for the
// reply as long as clients do. A reply that is an error is returned as one.
func (d Dialer) Ask(node string, args ...string) (any, error) {
	return d.AskFor(patience, node, args...)
}

// AskFor is Ask with a patience of its own.
func (d Dialer) AskFor(patience time.Duration, node string, args ...string) (any, error) {
	nc, err := d(node, impatient)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	return newConn(nc).do(patience, args...)
}

// Info is INFO of a node, field by field.
func (d Dialer) Info(node string) (map[string]string, error) {
	text, err := d.AskFor(impatient, node, "INFO")
	if err != nil {
		return nil, err
	}
	return infoFields(text), nil
}

func infoFields(text any) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(fmt.Sprint(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Leader is the node that says it leads in the highest term, "" if none does.
func (d Dialer) Leader(nodes []string) string {
	var mu sync.Mutex
	var all sync.WaitGroup
	leader, highest := "", uint64(0)
	for _, n := range nodes {
		all.Go(func() {
			f, err := d.Info(n)
			term, _ := strconv.ParseUint(f["raft_term"], 10, 64)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && f["raft_role"] == "leader" && term >= highest {
				leader, highest = n, term
			}
		})
	}
	all.Wait()
	return leader
}
