package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// What a call asks for. The numbers are on the wire (FORMAT.md).
const (
	kindForward uint8 = 1 // a chunk of commands, for the leader
	kindStatus  uint8 = 2 // peerStatus
	kindReceipt uint8 = 3 // the newest receipt
	kindChange  uint8 = 4 // a change of membership or leadership, for the leader
	kindInvite  uint8 = 5 // the leader asks a node that waits whether it would join
)

const (
	handshakeTimeout = 3 * time.Second // from the accept to the answer
	maxHandshakes    = 64              // at once; what comes on top is closed
	maxAccepted      = 256             // open connections from peers
	raftBacklog      = 64              // accepted for raft and not yet taken by it
	linkIdle         = 5 * time.Minute // far more than a call takes; then the next new link ends this one
)

// rpcHandler answers calls of one kind. It runs on the goroutine that reads the
// connection and must not block there: it answers when it likes, on any
// goroutine, by one call of reply, which copies the answer. reply(nil) says that
// it did not take the call and that nothing happened. The payload is the
// handler's until it replies. timeout is what is left of the caller's time.
type rpcHandler func(payload []byte, timeout time.Duration, reply func([]byte))

// peersConfig says who this node is and what it knows of the others. The
// functions are called from many goroutines and must not block.
type peersConfig struct {
	Listen   string // address to bind
	Self     Member // Self.Peer is the address told to raft
	RaftID   string
	Insecure bool // peers.insecure
	Network  Network
	Clock    Clock

	Lineage  func() lineage
	Lookup   func(addr string) (raftID string)              // by raft's configuration; "" if unknown
	Known    func(raftID string) (ok bool, conflict string) // a member? else the member with the same node id under another raft id
	Hello    func(hello)                                    // nil, or called with each hello, before it is judged
	Logger   *slog.Logger
	Handlers map[uint8]rpcHandler
}

// peers is the peer port: one listener, and a link to each peer that was called.
// FORMAT.md describes what goes over it.
type peers struct {
	cfg  peersConfig
	ln   net.Listener
	raft *streamLayer
	log  *refusalLog

	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	wg         sync.WaitGroup
	handshakes chan struct{} // a slot for each handshake under way

	mu       sync.Mutex
	links    map[linkKey]*link
	accepted map[net.Conn]struct{}
	closed   bool
}

// linkKey says where a link goes, and whether anyone may answer there: else only
// the member with that address.
type linkKey struct {
	addr   string
	anyone bool
}

// errPeersClosed is what calls and dials get after Close.
var errPeersClosed = errors.New("the peer port is closed")

// listenPeers binds the peer address and starts to answer.
func listenPeers(cfg peersConfig) (*peers, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := checkRaftID(cfg.RaftID); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if cfg.Clock == nil {
		cfg.Clock = machineClock{}
	}
	if cfg.Network == nil {
		cfg.Network = machineNetwork{cfg.Insecure}
	}
	ln, err := cfg.Network.Listen(ctx, cfg.Listen)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("listen on peer address %q: %w", cfg.Listen, err)
	}
	p := &peers{
		cfg:        cfg,
		ln:         ln,
		log:        newRefusalLog(cfg.Logger),
		ctx:        ctx,
		cancel:     cancel,
		handshakes: make(chan struct{}, maxHandshakes),
		links:      make(map[linkKey]*link),
		accepted:   make(map[net.Conn]struct{}),
	}
	p.raft = newStreamLayer(p)
	p.wg.Add(1)
	go p.accept()
	return p, nil
}

// Addr is the address that is bound; it differs from Self.Peer when that left the
// port to the kernel.
func (p *peers) Addr() string { return p.ln.Addr().String() }

// StreamLayer is what raft's transport dials and accepts through. There is one.
func (p *peers) StreamLayer() raft.StreamLayer { return p.raft }

// call sends payload to the peer at addr and waits for the answer, for at most
// timeout. The payload may be reused when it returns; the reply is the caller's.
//
//	Applied: reply is the answer
//	Refused: no handler took it, for certain
//	Unknown: a handler may have taken it
//
// It never sends twice.
func (p *peers) call(addr string, kind uint8, payload []byte, timeout time.Duration) (reply []byte, o fsm.Outcome) {
	l := p.link(addr)
	if l == nil {
		return nil, fsm.Refused
	}
	return l.call(kind, payload, timeout)
}

// lastError says why the newest attempt to reach addr failed; nil if it did not.
// A refusal by the peer's handshake is a *refusal.
func (p *peers) lastError(addr string) error {
	if l := p.link(addr); l != nil {
		return l.lastError()
	}
	return errPeersClosed
}

// link is the link to the member at addr.
func (p *peers) link(addr string) *link { return p.linkTo(linkKey{addr: addr}) }

// linkTo returns a link and starts it if there is none.
func (p *peers) linkTo(to linkKey) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	l := p.links[to]
	if l == nil {
		l = newLink(to.addr, func(ctx context.Context) (conn net.Conn, err error) {
			if to.anyone {
				conn, err = p.dialFor(ctx, to.addr, "", purposeRPC, dialTimeout)
			} else {
				conn, err = p.dial(ctx, to.addr, purposeRPC, dialTimeout)
			}
			if err == nil {
				forgetAtClose(conn)
			}
			return conn, err
		})
		p.dropIdle()
		p.links[to] = l
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			l.run(p.ctx)
		}()
	}
	l.used = time.Now()
	return l
}

// dropIdle ends the links that nobody has asked for lately: to addresses at which no
// member is any more, or none ever was. p.mu is held.
func (p *peers) dropIdle() {
	for to, l := range p.links {
		if time.Since(l.used) > linkIdle {
			l.close()
			delete(p.links, to)
		}
	}
}

// Close stops listening, breaks all connections and waits for the goroutines
// that served them; so no handler may be blocked. Calls under way end as broken.
func (p *peers) Close() error {
	err := p.sever()
	p.wg.Wait()
	return err
}

// sever is Close without the wait.
func (p *peers) sever() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.cancel()
	err := p.ln.Close()
	for conn := range p.accepted {
		conn.Close()
	}
	for _, l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.raft.Close()
	return err
}
