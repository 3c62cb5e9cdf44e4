package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"limitd/jepsen/history"
)

// lab implements Lab in namespaces.
type lab struct {
	o     Options
	net   *bridge
	nodes []*node
}

// Open makes the network, disks and configurations of a lab; no node runs yet. The
// process must be Inside.
func Open(o Options) (Lab, error) {
	if o.Proxy || o.Slow {
		return nil, fmt.Errorf("%w: neither proxies nor slow links are built yet", ErrUnable)
	}
	if err := prepare(); err != nil {
		return nil, err
	}
	ids := make([]string, o.Nodes+o.Spare)
	for i := range ids {
		ids[i] = fmt.Sprintf("n%d", i+1)
	}
	net, err := newBridge(ids)
	if err != nil {
		return nil, err
	}
	l := &lab{o: o, net: net}
	for _, dir := range []string{"data", "config", "trace", "log", "disk", "clock"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		n, err := l.addNode(id)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("node %s: %w", id, err), l.Close())
		}
		l.nodes = append(l.nodes, n)
	}
	for i, n := range l.nodes {
		if err := os.WriteFile(filepath.Join(o.Dir, "config", n.id+".toml"), []byte(l.config(i)), 0o600); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

func (l *lab) addNode(id string) (n *node, err error) {
	n = &node{id: id, host: l.net.hosts[id], l: l}
	n.log, err = os.OpenFile(filepath.Join(l.o.Dir, "log", id+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	data := filepath.Dir(n.Data())
	if l.o.Disks {
		if n.disk, err = newDisk(filepath.Join(l.o.Dir, "disk", id+".img"), data); err != nil {
			return nil, err
		}
	} else if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	if l.o.Clocks {
		n.clock, err = newWallClock(filepath.Join(l.o.Dir, "clock", id))
	}
	return n, err
}

// config is the configuration file of the i-th node. It lists the first voters; a
// spare lists itself too. All addresses for clients are loopback's, for the node that
// reads the file: what others must know is the peer address.
func (l *lab) config(i int) string {
	text := l.o.Settings + "\n[peers]\ninsecure = true\n"
	for j, n := range l.nodes {
		if j >= l.o.Nodes && j != i {
			continue
		}
		resp := fmt.Sprintf("127.0.0.1:%d", respPort)
		if j != i {
			resp = fmt.Sprintf("127.0.0.1:%d", respPort+1+j)
		}
		text += fmt.Sprintf("\n[[node]]\nid = %q\nresp = %q\npeer = %q\ndata = %q\n", n.id, resp, n.Peer(), n.Data())
	}
	return text
}

func (l *lab) Network() Network { return l.net }

func (l *lab) Nodes() []Node {
	all := make([]Node, len(l.nodes))
	for i, n := range l.nodes {
		all[i] = n
	}
	return all
}

func (l *lab) Node(id string) Node {
	i := slices.IndexFunc(l.nodes, func(n *node) bool { return n.id == id })
	if i < 0 {
		return nil
	}
	return l.nodes[i]
}

func (l *lab) Able(a Ability) error {
	switch a {
	case Netns, CPUQuota:
		return nil
	case PowerCut, DiskFull:
		if !l.o.Disks {
			return fmt.Errorf("%w: the lab was opened without disks", ErrUnable)
		}
		return nil
	case SlowDisk:
		if _, err := exec.LookPath("strace"); err != nil {
			return fmt.Errorf("%w: strace is not installed (apt-get install strace)", ErrUnable)
		}
		return nil
	case WallTime:
		if !l.o.Clocks {
			return fmt.Errorf("%w: the lab was opened without clocks", ErrUnable)
		}
		return nil
	}
	return fmt.Errorf("%w: %s is not built yet", ErrUnable, a)
}

func (l *lab) Health() map[string]history.NodeHealth {
	all := map[string]history.NodeHealth{}
	for _, n := range l.nodes {
		h := history.NodeHealth{Client: l.net.reaches(Client, n.id, RESPPort)}
		h.Up, h.Disk = n.up()
		for _, o := range l.nodes {
			if o != n && l.net.reaches(n.id, o.id, PeerPort) {
				h.Peers = append(h.Peers, o.id)
			}
		}
		all[n.id] = h
	}
	return all
}

func (l *lab) Heal() error {
	err := l.net.Cut(nil)
	for _, n := range l.nodes {
		err = errors.Join(err, n.heal())
	}
	return err
}

func (l *lab) Close() error {
	var err error
	for _, n := range l.nodes {
		err = errors.Join(err, n.heal(), n.Kill())
		if n.disk != nil {
			err = errors.Join(err, n.disk.detach())
		}
		n.log.Close()
	}
	return err
}
