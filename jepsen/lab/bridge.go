package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// switchNS is the namespace of the bridge.
const switchNS = "switch"

// bridge is a segment whose packets nft drops by sets of addresses, replaced in one
// step. It costs nothing, and cannot delay.
type bridge struct{ namespaces }

func newBridge(ids []string) (*bridge, error) {
	b := &bridge{}
	var here, there strings.Builder
	fmt.Fprintf(&here, "link add client type veth peer name p0 netns %s\n", switchNS)
	fmt.Fprintf(&here, "addr add %s/24 dev client\nlink set client up\n", b.host(Client))
	there.WriteString("link add bridge type bridge stp_state 0 forward_delay 0\nlink set bridge up\nlink set p0 master bridge up\n")
	for i, id := range ids {
		fmt.Fprintf(&here, "link add eth0 netns %s type veth peer name p%d netns %s\n", id, i+1, switchNS)
		fmt.Fprintf(&there, "link set p%d master bridge up\n", i+1)
	}
	return b, all("make the lab's bridge",
		func() error { return b.make(ids, switchNS) },
		batch(&here),
		func() error { return within(switchNS, there.String(), "ip", "-batch", "-") },
		func() error { return within(switchNS, filter, "nft", "-f", "-") },
		b.settle)
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
	if err := b.check(cuts); err != nil {
		return err
	}
	rules := "flush set bridge cuts pairs\nflush set bridge cuts doors\n"
	for _, c := range cuts {
		if c.Port == AnyPort {
			rules += fmt.Sprintf("add element bridge cuts pairs { %s . %s }\n", b.host(c.From), b.host(c.To))
		} else {
			rules += fmt.Sprintf("add element bridge cuts doors { %s . %s . %d }\n", b.host(c.From), b.host(c.To), c.Port.number())
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := within(switchNS, rules, "nft", "-f", "-"); err != nil {
		return err
	}
	b.cuts = slices.Clone(cuts)
	return nil
}

func (b *bridge) Shape(links map[Cut]Quality) error {
	if len(links) == 0 {
		return nil
	}
	return fmt.Errorf("%w: a bridge has no delays, a lab with Slow has", ErrUnable)
}

func (b *bridge) close() error {
	return errors.Join(command("", "ip", "link", "del", "client"), b.namespaces.close())
}
