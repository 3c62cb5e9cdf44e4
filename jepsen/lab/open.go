package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"limitd/jepsen/history"
)

// lab implements Lab.
type lab struct {
	o      Options
	net    network
	nodes  []*node
	unable map[Ability]error // what cannot be done here, and why
}

// Open makes the network, disks and configurations of a lab; no node runs yet. The
// process must be Inside, unless proxies are the network: these need neither that nor
// root, and Able says what is not to be had then.
func Open(o Options) (Lab, error) {
	if Inside() {
		unix.CloseOnExec(guardFD)
		if err := command("", "ip", "link", "set", "lo", "up"); err != nil {
			return nil, err
		}
	} else if !o.Proxy {
		return nil, errors.New("a lab is opened in namespaces of its own: call Enter first")
	}
	for _, dir := range []string{"data", "config", "trace", "log", "disk", "clock"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	l := &lab{o: o}
	l.unable = l.abilities()
	ids := make([]string, o.Nodes+o.Spare)
	for i := range ids {
		ids[i] = fmt.Sprintf("n%d", i+1)
	}
	var err error
	if l.net, err = l.connect(ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		n := &node{id: id, l: l}
		l.nodes = append(l.nodes, n)
		if err := n.furnish(); err != nil {
			return nil, errors.Join(fmt.Errorf("node %s: %w", id, err), l.Close())
		}
	}
	for i, n := range l.nodes {
		if err := os.WriteFile(filepath.Join(o.Dir, "config", n.id+".toml"), []byte(l.config(i)), 0o600); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// connect makes the network that the options ask for.
func (l *lab) connect(ids []string) (network, error) {
	switch {
	case l.o.Proxy:
		binaries := []string{l.o.Binary}
		if l.o.Older != "" {
			binaries = append(binaries, l.o.Older)
		}
		for _, binary := range binaries {
			if ok, err := obeys(binary); err != nil || !ok {
				return nil, errors.Join(fmt.Errorf("%s: proxies need a binary that BuildWithClock built", binary), err)
			}
		}
		return newProxies(ids)
	case l.o.Slow:
		return newTaps(ids, l.o.Seed)
	}
	return newBridge(ids)
}

// furnish gives a node its log, disk, clock and quota, as far as they are to be had.
func (n *node) furnish() (err error) {
	o := n.l.o
	n.log = history.LogFile(o.Dir, n.id)
	if err := os.WriteFile(n.log, nil, 0o600); err != nil {
		return err
	}
	data := filepath.Dir(n.Data())
	if n.l.unable[DiskFull] != nil {
		err = os.MkdirAll(data, 0o700)
	} else {
		n.disk, err = newDisk(filepath.Join(o.Dir, "disk", n.id+".img"), data)
	}
	if err == nil && n.l.unable[WallTime] == nil {
		n.clock, err = newWallClock(filepath.Join(o.Dir, "clock", n.id))
	}
	if err == nil && n.l.unable[CPUQuota] == nil {
		if n.quota, err = newQuota(); errors.Is(err, ErrUnable) {
			n.l.unable[CPUQuota], err = err, nil
		}
	}
	return err
}

// config is the configuration file of the i-th node. It lists the first voters; a
// spare lists itself too.
func (l *lab) config(i int) string {
	text := l.o.Settings + "\n[peers]\ninsecure = true\n"
	for j, n := range l.nodes {
		if j < l.o.Nodes || j == i {
			resp, peer := l.net.own(n.id)
			text += fmt.Sprintf("\n[[node]]\nid = %q\nresp = %q\npeer = %q\ndata = %q\n", n.id, resp, peer, n.Data())
		}
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
	err := errors.Join(l.net.Cut(nil), l.net.Shape(nil))
	for _, n := range l.nodes {
		err = errors.Join(err, n.heal())
	}
	return err
}

func (l *lab) Close() error {
	err := errors.Join(l.net.Cut(nil), l.net.Shape(nil))
	for _, n := range l.nodes {
		err = errors.Join(err, n.close())
	}
	return errors.Join(err, l.net.close())
}
