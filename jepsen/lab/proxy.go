package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// proxies is a network without namespaces: all on loopback, and a TCP proxy for each
// node, port and node that asks there. Clients get theirs by Dial. The lab's binary is told by routesEnv
// to dial proxies instead of its peers.
//
// Bytes that are cut off wait in the proxy, as TCP keeps what is not acknowledged. A
// cut is not all that it is between machines: to connect succeeds, and says nothing
// more; and a dead peer is not noticed by keepalive, for the proxy is alive.
type proxies struct {
	links
	subnet string

	doors   map[door]net.Listener
	open    map[*passage]bool
	changed chan struct{} // closed and made anew at each change of the cuts
	closed  bool
	alive   sync.WaitGroup
}

// door is where a node is asked by another, or by clients.
type door struct {
	from, to string
	port     Port
}

func newProxies(ids []string) (*proxies, error) {
	p := &proxies{
		links: links{ends: append([]string{Client}, ids...)},
		// Of loopback's 16 million addresses a few that no other lab has.
		subnet: fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), 1+rand.IntN(254)),
		doors:  map[door]net.Listener{}, open: map[*passage]bool{}, changed: make(chan struct{}),
	}
	for _, from := range ids {
		for _, to := range ids {
			if from == to {
				continue
			}
			for _, port := range []Port{PeerPort, RESPPort} {
				ln, err := net.Listen("tcp", p.subnet+"100:0")
				if err != nil {
					return nil, errors.Join(fmt.Errorf("make the lab's proxies: %w", err), p.close())
				}
				d := door{from, to, port}
				p.doors[d] = ln
				p.alive.Go(func() { p.accept(d, ln) })
			}
		}
	}
	return p, nil
}

func (p *proxies) address(id string, port Port) string {
	return fmt.Sprintf("%s%d:%d", p.subnet, slices.Index(p.ends, id), port.number())
}

func (p *proxies) own(id string) (resp, peer string) {
	return p.address(id, RESPPort), p.address(id, PeerPort)
}

// place routes what a node dials to its proxies.
func (p *proxies) place(id string) (prefix, env []string) {
	var routes []string
	for d, ln := range p.doors {
		if d.from == id {
			routes = append(routes, p.address(d.to, d.port)+"="+ln.Addr().String())
		}
	}
	return nil, []string{routesEnv + "=" + strings.Join(routes, ",")}
}

func (p *proxies) Cut(cuts []Cut) error {
	if err := p.check(cuts); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = slices.Clone(cuts)
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

func (p *proxies) Shape(links map[Cut]Quality) error {
	if len(links) == 0 {
		return nil
	}
	return fmt.Errorf("%w: proxies lose and delay nothing", ErrUnable)
}

func (p *proxies) Sever(a, b string) error {
	if err := p.check([]Cut{{From: a, To: b}}); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		if d := c.door; d.from == a && d.to == b || d.from == b && d.to == a {
			c.reset()
		}
	}
	return nil
}

// Dial returns a connection that is through to the node.
func (p *proxies) Dial(node string, port Port, timeout time.Duration) (net.Conn, error) {
	d := door{Client, node, port}
	if err := p.check([]Cut{{Client, node, port}}); err != nil {
		return nil, err
	}
	begun := time.Now()
	if !await(p, time.After(timeout), func() bool { return p.isOpen(d) }) {
		return nil, fmt.Errorf("dial %s: cut off for %v", node, timeout)
	}
	far, err := net.DialTimeout("tcp", p.address(node, port), max(time.Millisecond, timeout-time.Since(begun)))
	if err != nil {
		return nil, err
	}
	conn, near, err := pair(p.subnet + "100:0")
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	p.carry(d, near, far)
	return conn, nil
}

// pair returns the two ends of a connection.
func pair(addr string) (dialed, accepted net.Conn, err error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if dialed, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		return nil, nil, err
	}
	if accepted, err = ln.Accept(); err != nil {
		return nil, nil, errors.Join(err, dialed.Close())
	}
	return dialed, accepted, nil
}

// isOpen says that packets pass a door both ways.
func (p *proxies) isOpen(d door) bool {
	return p.passes(d.from, d.to, d.port) && p.passes(d.to, d.from, d.port)
}

// await waits until the cuts make a thing so, or for the end of patience: false.
func await[T any](p *proxies, patience <-chan T, so func() bool) bool {
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if so() {
			return true
		}
		select {
		case <-changed:
		case <-patience:
			return false
		}
	}
}

func (p *proxies) close() error {
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		c.reset()
	}
	p.mu.Unlock()
	var err error
	for _, ln := range p.doors {
		err = errors.Join(err, ln.Close())
	}
	p.alive.Wait()
	return err
}
