package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"limitd/cluster"
	"limitd/limiter"
	"limitd/resp"
	"limitd/trace"
)

const (
	grace       = 2 * time.Second // a stopping leader answers this long while leadership and clients move
	drainTime   = 2 * time.Second // then its connections may finish this long
	singleReady = 5 * time.Second // a cluster of one elects itself before it accepts clients
)

// server is one running node: the rooms in the order in which they are opened.
type server struct {
	log     *slog.Logger
	node    *cluster.Node
	limiter *limiter.Limiter
	resp    *resp.Server
	loading atomic.Bool  // the node is still loading its state
	leaving atomic.Int32 // how often a client asked this node to leave, and was not refused
	removed chan removal // the node is no member any more: it is to stop in order
	failed  chan error   // a *fatalError, or why the node cannot go on for other reasons
}

// removal is why a node is no member any more, and whether it was asked to leave.
type removal struct {
	reason error
	asked  bool
}

func newServer(log *slog.Logger) *server {
	return &server{log: log, removed: make(chan removal, 1), failed: make(chan error, 2)}
}

// openServer opens the node's data, joins its peers and accepts clients.
func openServer(cfg Config, self NodeConfig, join joining, lab labFlags, log *slog.Logger) (*server, error) {
	maxMemory, err := cfg.Limits.MaxMemory.resolve()
	if err != nil {
		return nil, fmt.Errorf("limits.max_memory: %w", err)
	}
	s := newServer(log)
	cc := s.clusterConfig(cfg, self, join)
	cc.MaxMemory = maxMemory
	lab.hurry(&cc)
	s.node, err = cluster.Open(cc, nil)
	if err != nil {
		return nil, err
	}
	lc, rc := s.limiterConfig(cfg.Limits, maxMemory), respConfig(cfg, maxMemory, log)
	if lab.trace != "" {
		w, err := trace.Create(lab.trace, self.ID, func(err error) { log.Error(err.Error()) })
		if err != nil {
			return nil, errors.Join(err, s.node.Close())
		}
		s.node.FSM().Trace(w.Write)
		lc.Trace, rc.Trace = w.Write, true
	}
	s.limiter = limiter.New(lc, s.node.FSM(), s.node, s.node)
	s.node.SetHandler(s.limiter.Serve)
	s.resp = resp.NewServer(rc, s.limiter, s.admin())
	ln, err := net.Listen("tcp", self.RESP)
	if err != nil {
		s.limiter.Close()
		return nil, errors.Join(fmt.Errorf("listen for clients: %w", err), s.node.Close())
	}
	patience := time.Duration(cfg.Limits.LeaderWait) + s.node.FoundingWait()
	if err := s.bringUp(s.start, ln, patience); err != nil {
		s.limiter.Close()
		ln.Close() // by resp already, if clients were accepted
		return nil, errors.Join(err, s.resp.Close(), s.node.Close())
	}
	log.Info("serving", "resp", self.RESP, "peer", self.Peer, "data", self.Data, "cluster", cfg.Cluster.Name, "role", s.node.Status().Role, "version", version)
	return s, nil
}

// start loads the state; the only voter of a cluster is ready then.
func (s *server) start() error {
	if err := s.node.Start(); err != nil {
		return err
	}
	if onlyVoter(s.node.Status()) {
		s.node.AwaitLeader(singleReady)
	}
	return nil
}

// onlyVoter says that a node elects itself. What the configuration lists does not
// tell: a node of a file of three may be the only voter, and one that was started
// by flags one of five.
func onlyVoter(st cluster.Status) bool {
	switch st.Role {
	case "leader", "candidate", "follower":
		return st.Voters == 1
	}
	return false
}

// change has the node make a change that a client asked it for.
func (s *server) change(c cluster.Change, node func(cluster.Change) error) error {
	if c.Op != cluster.ChangeLeave {
		return node(c)
	}
	s.leaving.Add(1)
	err := node(c)
	if err != nil {
		s.leaving.Add(-1)
	}
	return err
}

// admin is the node as the wire sees it.
func (s *server) admin() admin {
	return admin{
		node:    s.node,
		change:  func(c cluster.Change) error { return s.change(c, s.node.Change) },
		loading: s.loading.Load,
	}
}

// bringUp starts the node and accepts clients. They wait for a short start; a
// long one (a large state) is no reason to leave them without an answer: after
// patience they are accepted and told -LOADING until the start is over.
func (s *server) bringUp(start func() error, ln net.Listener, patience time.Duration) error {
	s.loading.Store(true)
	started := make(chan error, 1)
	go func() {
		err := start()
		if err == nil {
			s.loading.Store(false)
		}
		started <- err
	}()
	select {
	case err := <-started:
		if err == nil {
			s.accept(ln)
		}
		return err
	case <-time.After(patience):
		s.accept(ln)
		return <-started
	}
}

func (s *server) accept(ln net.Listener) {
	go func() {
		if err := s.resp.Serve(ln); err != nil {
			s.failed <- fmt.Errorf("accept clients on %s: %w", ln.Addr(), err)
		}
	}()
}

// stop hands over leadership, answers for the rest of the grace, drains clients,
// and closes the rooms.
func (s *server) stop() error {
	if s.node.Leading() && s.node.Status().Voters > 1 {
		s.handOver(time.After(grace))
	}
	s.resp.Drain(drainTime)
	s.limiter.Close()
	if err := s.node.Close(); err != nil {
		return fmt.Errorf("close node: %w", err)
	}
	return nil
}

// handOver moves leadership to another node and returns when the grace is over.
// Meanwhile clients are answered, through the new leader as soon as there is
// one: they see this node go when another one is ready, and not before.
func (s *server) handOver(graceOver <-chan time.Time) {
	moved := make(chan error, 1)
	go func() { moved <- s.node.Transfer("") }()
	select {
	case err := <-moved:
		if err != nil {
			s.log.Warn("leadership was not handed over; the others will elect", "error", err)
		}
	case <-graceOver:
		s.log.Warn("leadership was not handed over in time; the others will elect", "waited", grace)
		return
	}
	<-graceOver
}

// fatal notes why the node must not go on. That it was not let in is an error like
// any other: there is nothing yet that going on could harm.
func (s *server) fatal(err error) {
	if !errors.Is(err, cluster.ErrJoinRefused) {
		err = &fatalError{err}
	}
	select {
	case s.failed <- err:
	default: // one reason is enough
	}
}
