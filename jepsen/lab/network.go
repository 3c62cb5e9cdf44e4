package lab

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Addresses exist only in the lab's own namespaces.
const (
	subnet     = "10.77.0."
	clientHost = subnet + "100"
	peerPort   = 7380
	respPort   = 6380
)

// switchNS is the namespace of the bridge. The clients are this process, in a
// namespace of its own with a link to the bridge like any node, so that they can be
// cut off too.
const switchNS = "switch"

// bridge is the network of a lab: one Ethernet segment whose packets nft drops by
// sets of addresses, replaced in one step.
type bridge struct {
	hosts map[string]string // endpoint: address

	mu   sync.Mutex
	cuts []Cut
}

func newBridge(ids []string) (*bridge, error) {
	b := &bridge{hosts: map[string]string{Client: clientHost}}
	var batch strings.Builder
	fmt.Fprintf(&batch, "link add client type veth peer name p0 netns %s\n", switchNS)
	fmt.Fprintf(&batch, "addr add %s/24 dev client\nlink set client up\n", clientHost)
	steps := []func() error{
		func() error { return command("", "ip", "netns", "add", switchNS) },
		func() error {
			return within(switchNS, "link add bridge type bridge stp_state 0 forward_delay 0\nlink set bridge up\n", "ip", "-batch", "-")
		},
	}
	ports := "link set p0 master bridge up\n"
	for i, id := range ids {
		b.hosts[id] = fmt.Sprintf("%s%d", subnet, i+1)
		steps = append(steps, func() error { return command("", "ip", "netns", "add", id) })
		fmt.Fprintf(&batch, "link add eth0 netns %s type veth peer name p%d netns %s\n", id, i+1, switchNS)
		ports += fmt.Sprintf("link set p%d master bridge up\n", i+1)
	}
	steps = append(steps,
		func() error { return command(batch.String(), "ip", "-batch", "-") },
		func() error { return within(switchNS, ports, "ip", "-batch", "-") },
		func() error { return within(switchNS, filter, "nft", "-f", "-") })
	for _, id := range ids {
		steps = append(steps, func() error { return b.settle(id) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("make the lab's network: %w", err)
		}
	}
	return b, nil
}

// settle gives a node's namespace its address. Without passwords a node takes
// clients on loopback only, so what comes to its port from outside is sent there.
func (b *bridge) settle(id string) error {
	host := b.hosts[id]
	err := within(id, fmt.Sprintf("link set lo up\naddr add %s/24 dev eth0\nlink set eth0 up\n", host), "ip", "-batch", "-")
	if err == nil {
		err = within(id, "", "sysctl", "-qw", "net.ipv4.conf.eth0.route_localnet=1")
	}
	if err == nil {
		err = within(id, fmt.Sprintf(`table ip clients {
	chain arriving {
		type nat hook prerouting priority dstnat
		ip daddr %s tcp dport %d dnat to 127.0.0.1:%d
	}
}
`, host, respPort, respPort), "nft", "-f", "-")
	}
	return err
}

// filter drops what its sets name: all from one address to another, or only what
// belongs to a port, asked or answered.
const filter = `table bridge cuts {
	set pairs {
		type ipv4_addr . ipv4_addr
	}
	set doors {
		type ipv4_addr . ipv4_addr . inet_service
	}
	chain passing {
		type filter hook forward priority 0; policy accept;
		ip saddr . ip daddr @pairs drop
		ip saddr . ip daddr . tcp dport @doors drop
		ip saddr . ip daddr . tcp sport @doors drop
	}
}
`

func (b *bridge) Cut(cuts []Cut) error {
	rules := "flush set bridge cuts pairs\nflush set bridge cuts doors\n"
	for _, c := range cuts {
		from, to := b.hosts[c.From], b.hosts[c.To]
		if from == "" || to == "" {
			return fmt.Errorf("cut %s from %s: there is no such endpoint", c.To, c.From)
		}
		switch c.Port {
		case AnyPort:
			rules += fmt.Sprintf("add element bridge cuts pairs { %s . %s }\n", from, to)
		case PeerPort:
			rules += fmt.Sprintf("add element bridge cuts doors { %s . %s . %d }\n", from, to, peerPort)
		case RESPPort:
			rules += fmt.Sprintf("add element bridge cuts doors { %s . %s . %d }\n", from, to, respPort)
		default:
			return fmt.Errorf("cut %s from %s: port %q is neither %q nor %q", c.To, c.From, c.Port, PeerPort, RESPPort)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := within(switchNS, rules, "nft", "-f", "-"); err != nil {
		return err
	}
	b.cuts = append([]Cut(nil), cuts...)
	return nil
}

// reaches says that packets to a port go from one endpoint to another and back.
func (b *bridge) reaches(from, to string, port Port) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.cuts {
		pair := c.From == from && c.To == to || c.From == to && c.To == from
		if pair && (c.Port == AnyPort || c.Port == port) {
			return false
		}
	}
	return true
}

func (b *bridge) Shape(map[Cut]Quality) error {
	return fmt.Errorf("%w: a bridge has no delays; a lab with Slow has", ErrUnable)
}

func (b *bridge) Sever(from, to string) error {
	ns, other := from, b.hosts[to]
	if ns == Client {
		ns, other = to, b.hosts[from]
	}
	if other == "" || b.hosts[ns] == "" {
		return fmt.Errorf("sever %s and %s: there is no such endpoint", from, to)
	}
	return within(ns, "", "ss", "-K", "dst", other)
}

func (b *bridge) Dial(node string, port Port, timeout time.Duration) (net.Conn, error) {
	n := respPort
	if port == PeerPort {
		n = peerPort
	}
	return net.DialTimeout("tcp", fmt.Sprintf("%s:%d", b.hosts[node], n), timeout)
}
