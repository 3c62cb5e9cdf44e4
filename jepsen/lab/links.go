package lab

import (
	"fmt"
	"slices"
	"sync"
)

// network is a Network as the rest of a lab needs it.
type network interface {
	Network
	address(id string, port Port) string    // where others reach a node
	own(id string) (resp, peer string)      // where it listens
	place(id string) (prefix, env []string) // puts a program into a node's place
	reaches(from, to string, port Port) bool
	close() error
}

// The ports of every node, as others see them.
const (
	respPort = 6380
	peerPort = 7380
)

func (p Port) number() int {
	if p == PeerPort {
		return peerPort
	}
	return respPort
}

// links is what a network was told to do to what passes.
type links struct {
	ends []string // Client and the nodes

	mu     sync.Mutex
	cuts   []Cut
	shapes map[Cut]Quality
}

// check says what is wrong with cuts, or with the links of qualities.
func (l *links) check(all []Cut) error {
	for _, c := range all {
		for _, end := range []string{c.From, c.To} {
			if !slices.Contains(l.ends, end) {
				return fmt.Errorf("link from %q to %q: there is no endpoint %q", c.From, c.To, end)
			}
		}
		if c.Port != AnyPort && c.Port != PeerPort && c.Port != RESPPort {
			return fmt.Errorf("link from %q to %q: port %q is neither %q nor %q", c.From, c.To, c.Port, PeerPort, RESPPort)
		}
	}
	return nil
}

// passes says that what belongs to a port is let through in one direction.
func (l *links) passes(from, to string, port Port) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(l.cuts, func(c Cut) bool {
		return c.From == from && c.To == to && (c.Port == AnyPort || c.Port == port)
	})
}

// reaches says that a port of one endpoint can be used by another: that packets pass
// both ways, and no worse than ever.
func (l *links) reaches(from, to string, port Port) bool {
	if !l.passes(from, to, port) || !l.passes(to, from, port) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for link, q := range l.shapes {
		if pair := link.From == from && link.To == to || link.From == to && link.To == from; pair && q != (Quality{}) {
			return false
		}
	}
	return true
}
