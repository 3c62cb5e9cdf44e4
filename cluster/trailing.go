package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// setTrailing keeps the log behind a snapshot within its bytes, and long enough
// that a follower that was away for a moment needs no snapshot, and that one which
// is being sent a snapshot needs no second one.
func (n *Node) setTrailing(r *raft.Raft) {
	n.trans.holds.setting.Lock()
	defer n.trans.holds.setting.Unlock()
	first, err := n.logs.FirstIndex()
	if err != nil {
		return
	}
	last, err := n.logs.LastIndex()
	if err != nil {
		return
	}
	c := r.ReloadableConfig()
	want := n.logs.trailing(n.cfg.TrailingBytes, n.cfg.TrailingFloor, first, last)
	want = max(want, n.heldBack(r.CurrentTerm(), last, want))
	if diff := max(want, c.TrailingLogs) - min(want, c.TrailingLogs); diff*10 <= c.TrailingLogs {
		return
	}
	c.TrailingLogs = want
	if err := r.ReloadConfig(c); err != nil {
		n.log.Warn("cannot set how much of the log stays behind a snapshot", "error", err)
	}
}

// holds are the followers for which this node, leading, keeps more of the log than
// it would: those that are being sent a snapshot, until they have caught up. On a busy
// leader the log behind a snapshot may be compacted away before the snapshot is
// installed; the follower would then need the next one, and perhaps never be done.
type holds struct {
	setting sync.Mutex // one setTrailing at a time
	mu      sync.Mutex
	of      map[raft.ServerID]*hold
}

// hold is what is kept for one follower.
type hold struct {
	from    uint64 // index of the snapshot: the follower goes on behind it
	written uint64 // bytes that had been written to the log when it began
	sending bool
	ended   int64 // boot clock: the sending
}

const (
	holdBytes = 1 << 30          // of log at most are kept for a follower
	holdQuiet = 10 * time.Second // one that has not answered for so long is not waited for
)

// holdLog keeps the log from index on for a follower, until it has caught up after
// the end of the sending, which the caller tells.
func (n *Node) holdLog(id raft.ServerID, index uint64) (ended func()) {
	h := &hold{from: index, written: n.logs.written.Load(), sending: true}
	n.trans.holds.mu.Lock()
	if n.trans.holds.of == nil {
		n.trans.holds.of = map[raft.ServerID]*hold{}
	}
	n.trans.holds.of[id] = h
	n.trans.holds.mu.Unlock()
	if r := n.raft.Load(); r != nil {
		n.setTrailing(r)
	}
	return func() {
		n.trans.holds.mu.Lock()
		defer n.trans.holds.mu.Unlock()
		h.sending, h.ended = false, n.clock.Boot()
	}
}

// heldBack is how many of the newest entries, up to last, stay for the followers that
// are waited for, 0 if none is; want stay without them. It is counted from the end of
// the log, which moves on until the next look: so it is more than they need now.
func (n *Node) heldBack(term, last, want uint64) (count uint64) {
	n.trans.holds.mu.Lock()
	defer n.trans.holds.mu.Unlock()
	for id, h := range n.trans.holds.of {
		if n.holdIsOver(id, h, term, last, want) {
			delete(n.trans.holds.of, id)
			continue
		}
		count = max(count, 2*(last-min(last, h.from))+maxTrailing)
	}
	return count
}

// holdIsOver says that a follower has caught up, or that it is not waited for.
func (n *Node) holdIsOver(id raft.ServerID, h *hold, term, last, want uint64) bool {
	if n.diskLow.Load() || n.logs.written.Load()-h.written > holdBytes {
		return true
	}
	if h.sending {
		return false
	}
	ack, _ := n.acks.peer(id, term)
	quiet := n.clock.Boot() - max(h.ended, ack.heard)
	return ack.match >= h.from && ack.match+want >= last || quiet > int64(holdQuiet)
}
