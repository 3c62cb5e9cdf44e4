package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Addresses exist only in the lab's own namespaces.
const subnet = "10.77.0."

// namespaces holds one network namespace per node, on one Ethernet segment. The
// clients are this process, in a namespace of its own with a link to the segment
// like any node, so that they can be cut off too.
type namespaces struct {
	links
	names []string
}

// host is the address of an endpoint.
func (s *namespaces) host(end string) string {
	i := slices.Index(s.ends, end)
	if end == Client {
		i = 100
	}
	return fmt.Sprint(subnet, i)
}

func (s *namespaces) address(id string, port Port) string {
	return fmt.Sprintf("%s:%d", s.host(id), port.number())
}

// own is loopback for clients: without passwords a node takes none from elsewhere.
func (s *namespaces) own(id string) (resp, peer string) {
	return fmt.Sprintf("127.0.0.1:%d", respPort+slices.Index(s.ends, id)), s.address(id, PeerPort)
}

func (s *namespaces) place(id string) (prefix, env []string) {
	return []string{"nsenter", "--net=/run/netns/" + id}, nil
}

// make makes a namespace for each name. Their names lie in a /run of its own.
func (s *namespaces) make(ids []string, more ...string) error {
	s.ends = append([]string{Client}, ids...)
	s.names = append(more, ids...)
	if err := unix.Mount("none", "/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount a /run of its own: %w", err)
	}
	if err := os.Mkdir("/run/netns", 0o755); err != nil {
		return err
	}
	for _, name := range s.names {
		if err := command("", "ip", "netns", "add", name); err != nil {
			return err
		}
	}
	return nil
}

// close removes the namespaces, and with them the links into them.
func (s *namespaces) close() error {
	var err error
	for _, name := range s.names {
		err = errors.Join(err, command("", "ip", "netns", "del", name))
	}
	return errors.Join(err, unix.Unmount("/run", unix.MNT_DETACH))
}

// settle gives each node's namespace, which has an eth0 by now, its address. What
// comes to its port for clients from outside is sent to loopback.
func (s *namespaces) settle() error {
	for _, id := range s.ends[1:] {
		host := s.host(id)
		resp, _ := s.own(id)
		err := within(id, fmt.Sprintf("link set lo up\naddr add %s/24 dev eth0\nlink set eth0 up\n", host), "ip", "-batch", "-")
		if err == nil {
			err = within(id, "", "sysctl", "-qw", "net.ipv4.conf.eth0.route_localnet=1")
		}
		if err == nil {
			err = within(id, fmt.Sprintf(`table ip clients {
	chain arriving {
		type nat hook prerouting priority dstnat
		ip daddr %s tcp dport %d dnat to %s
	}
}
`, host, respPort, resp), "nft", "-f", "-")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sever has the kernel of one end reset what is open to the other, which then hears
// of it, if it can be reached.
func (s *namespaces) Sever(a, b string) error {
	if err := s.check([]Cut{{From: a, To: b}}); err != nil {
		return err
	}
	if a == Client {
		a, b = b, a
	}
	return within(a, "", "ss", "-K", "dst", s.host(b))
}

func (s *namespaces) Dial(node string, port Port, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", s.address(node, port), timeout)
}

// within runs a program in a network namespace.
func within(netns, input, name string, args ...string) error {
	return command(input, "nsenter", append([]string{"--net=/run/netns/" + netns, name}, args...)...)
}

// all runs steps until one fails.
func all(what string, steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// batch runs lines of ip(8) in this namespace.
func batch(lines *strings.Builder) func() error {
	return func() error { return command(lines.String(), "ip", "-batch", "-") }
}
