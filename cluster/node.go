package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"limitd/fsm"
	"limitd/snapshot"
)

// Node is one member of the cluster. Its methods may be used by many goroutines
// at once.
type Node struct {
	cfg     Config
	clock   Clock
	awake   *awake
	log     *slog.Logger
	handler Handler

	lock     *os.File
	store    string // that keeps the log
	raftID   string
	disk     *disk
	logs     *logStore
	stable   *stableStore
	snaps    atomic.Pointer[snapshot.Store]
	fsm      *fsm.FSM
	receipts receipts
	peers    *peers
	trans    *transport
	pacing   pacing // of snapshots that are read or installed
	cache    *raft.LogCache
	stored   raft.Configuration // what the stores held at Open
	logged   lineage            // that of the log at Open, if it holds the beginning
	raft     atomic.Pointer[raft.Raft]

	configs  configurations
	joining  joining
	caller   atomic.Pointer[hello] // the first node with a cluster that called
	changing chan struct{}         // holds one token while the membership is being changed
	removed  removal

	turn     chan struct{} // holds one token while a batch is decided and in flight
	turnTerm uint64        // of the turn
	lead     atomic.Pointer[leadership]
	leadMu   sync.Mutex // orders publishing a leadership and losing it

	reads      versions
	acks       acks
	arrivals   arrivals
	leaderNews broadcast

	committed    atomic.Int64 // boot clock of the newest batch that took effect here
	transferring atomic.Bool
	transferred  atomic.Int64  // boot clock of the end of the newest transfer, or of the newest order to lead
	refusedSince atomic.Int64  // how long the process had run when raft began to refuse writes for a transfer
	boundedBases atomic.Uint64 // how often a clock of a leadership was too far ahead
	diskFree     atomic.Int64
	diskLow      atomic.Bool // of this node
	votersLow    atomic.Bool // of so many voters that a majority would be lost
	polled       pollCache

	background sync.WaitGroup
	stopping   chan struct{}
	halted     chan struct{} // closed when the node must not go on
	haltOnce   sync.Once
	started    bool
	closeOnce  sync.Once
	closeErr   error
}

// Open takes the data directory, opens and checks the stores, and loads nothing
// yet: FSM may be used, Start must follow. An error says what is wrong with the
// configuration or which file, and what to do.
func Open(cfg Config, h Handler) (*Node, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, clock: cfg.Clock, log: cfg.Logger, handler: h,
		reads:    ownVersions,
		turn:     make(chan struct{}, 1),
		changing: make(chan struct{}, 1),
		stopping: make(chan struct{}),
		halted:   make(chan struct{}),
	}
	n.awake = newAwake(n.clock, cfg.Heartbeat)
	n.receipts.clock = n.clock
	n.pacing.off = cfg.Network != nil
	n.disk = newDisk(n.clock, n.fatal)
	if err := n.openStores(); err != nil {
		n.closeStores()
		return nil, n.mend(newer(err))
	}
	return n, nil
}

// openStores opens what is in the data directory, and refuses what does not fit
// together.
func (n *Node) openStores() (err error) {
	dir := n.cfg.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if _, _, err := checkStore(dir, n.cfg.LogStore); err != nil {
		return err
	}
	if n.lock, err = lockDir(dir); err != nil {
		return err
	}
	if err := n.openLog(dir); err != nil {
		return err
	}
	if err := n.openSnapshots(dir); err != nil {
		return err
	}
	n.acks.self = n.serverID()
	if err := n.joining.load(dir); err != nil {
		return err
	}
	if err := n.checkContinuity(); err != nil {
		return err
	}
	if err := n.findLineage(); err != nil {
		return err
	}
	return n.checkVersions()
}

// SetHandler sets the handler of payloads from other nodes, before Start.
func (n *Node) SetHandler(h Handler) { n.handler = h }

// FSM is the replicated state, from Open on. It is empty until Start has loaded
// the snapshot.
func (n *Node) FSM() *fsm.FSM { return n.fsm }

// Start opens the peer port and loads the state. It returns before a leader is
// known; a cluster of one leads by then or a moment later. Before a node founds a
// cluster of one it listens for FoundingWait.
func (n *Node) Start() error {
	if n.started {
		return errors.New("the node is started already")
	}
	n.started = true
	var err error
	n.peers, err = listenPeers(peersConfig{
		Listen: n.cfg.self().Peer, Self: n.cfg.self(), RaftID: n.raftID, Insecure: n.cfg.Insecure, Network: n.cfg.Network, Clock: n.clock,
		Lineage: n.allegiance, Lookup: n.lookup, Known: n.known, Hello: n.noteHello, Logger: n.log,
		Handlers: map[uint8]rpcHandler{
			kindForward: n.answerForward,
			kindStatus:  answerStatus(n.ownStatus),
			kindReceipt: n.answerReceipt,
			kindChange:  n.answerChange,
			kindInvite:  n.answerInvite,
		},
	})
	if err != nil {
		return err
	}
	n.background.Go(func() { n.awake.run(n.stopping) })
	n.checkDisk()
	if n.empty() {
		err = n.enterCluster()
	} else {
		if n.cfg.Join != nil {
			n.log.Info("this node has been a member before: it does not ask to join", "raft_id", n.raftID)
		}
		err = n.startRaft(nil)
	}
	if err != nil {
		return err
	}
	n.background.Go(n.watch)
	n.background.Go(n.maintain)
	n.background.Go(n.proposeTicks)
	n.background.Go(n.keepReceipts)
	n.background.Go(n.poll)
	n.background.Go(n.promoteCaughtUp)
	n.background.Go(n.followMembership)
	return nil
}

// answerForward handles kindForward.
func (n *Node) answerForward(payload []byte, timeout time.Duration, reply func([]byte)) {
	if n.handler == nil {
		reply(nil)
		return
	}
	n.handler(payload, timeout, reply)
}

// fatal stops the use of the node: it cannot go on without risking what it
// promised.
func (n *Node) fatal(err error) {
	n.haltOnce.Do(func() {
		close(n.halted)
		n.leadMu.Lock()
		n.lead.Store(nil)
		n.leadMu.Unlock()
		err = n.mend(err)
		n.log.Error("the node stops", "error", err)
		n.cedeAtTheEnd()
		if n.peers != nil {
			n.peers.sever() // a disk that hangs may keep the process, and others would wait for its answers
		}
		n.cfg.Fatal(err)
	})
}

// Close stops the node. It is a plain stop: the node stays a member.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		close(n.stopping)
		if r := n.raft.Load(); r != nil {
			n.stopRaft(r)
		}
		if n.peers != nil {
			n.closeErr = errors.Join(n.closeErr, n.peers.Close())
		}
		rest := make(chan error, 1)
		go func() { rest <- n.settle() }()
		select {
		case err := <-rest:
			n.closeErr = errors.Join(n.closeErr, err)
		case <-time.After(shutdownTime):
			n.closeErr = errors.Join(n.closeErr, fmt.Errorf("close %s: the disk has not answered for %s; what was promised is on it", n.cfg.DataDir, shutdownTime))
		}
	})
	return n.closeErr
}

// settle ends what still runs, and closes the stores.
func (n *Node) settle() error {
	n.background.Wait()
	var err error
	if s := n.snapshots(); s != nil && n.disk.failed() == nil && !n.isHalted() {
		err = s.SaveLocal()
	}
	return errors.Join(err, n.closeStores())
}

// closeStores closes what is open.
func (n *Node) closeStores() error {
	var errs []error
	if s := n.snapshots(); s != nil {
		errs = append(errs, s.Close())
	}
	if n.logs != nil {
		errs = append(errs, n.logs.file.Close())
	}
	if n.lock != nil {
		errs = append(errs, n.lock.Close())
	}
	return errors.Join(errs...)
}

func (n *Node) isHalted() bool {
	select {
	case <-n.halted:
		return true
	default:
		return false
	}
}

// serverID is this node's raft id as raft wants it.
func (n *Node) serverID() raft.ServerID { return raft.ServerID(n.raftID) }
