package lab

import (
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// CPU bounds the processor time of the node's processes, also of later ones.
func (n *node) CPU(share float64) error {
	if n.quota == nil {
		return n.l.Able(CPUQuota)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tight = share > 0 && share < 1
	return n.quota.bound(share)
}

func (n *node) PowerCut() error {
	if n.disk == nil {
		return n.l.Able(DiskFull)
	}
	return errors.Join(n.disk.thaw(), n.disk.cut(), n.Kill())
}

func (n *node) Fill(leave int64) error {
	if n.disk == nil {
		return n.l.Able(DiskFull)
	}
	return n.disk.fill(leave)
}

func (n *node) Drain() error {
	if n.disk == nil {
		return n.l.Able(DiskFull)
	}
	return n.disk.drain()
}

func (n *node) Stall(on bool) error {
	if n.disk == nil {
		return n.l.Able(DiskFull)
	}
	if on {
		return n.disk.freeze()
	}
	return n.disk.thaw()
}

func (n *node) Inject(spec string) error {
	n.let()
	p := n.process()
	if spec == "" || p == nil {
		return nil
	}
	if err := n.l.Able(SlowDisk); err != nil {
		return err
	}
	call, _, _ := strings.Cut(spec, ":")
	t, err := attach(p.PID(), n.raftLog(), call, spec)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.tracer = t
	n.mu.Unlock()
	return nil
}

// raftLog is the file to which the node writes its log.
func (n *node) raftLog() string {
	segments, _ := filepath.Glob(filepath.Join(n.Data(), "raft.wal", "*.wal")) // in order; none: the other store
	if len(segments) > 0 {
		return segments[len(segments)-1]
	}
	return filepath.Join(n.Data(), "raft.db")
}

// let ends what Inject began.
func (n *node) let() {
	n.mu.Lock()
	t := n.tracer
	n.tracer = nil
	n.mu.Unlock()
	if t != nil {
		t.end()
	}
}

func (n *node) JumpWall(d time.Duration) error {
	if n.clock == nil {
		return n.l.Able(WallTime)
	}
	return n.clock.jump(d)
}

func (n *node) DriftWall(rate float64) error {
	if n.clock == nil {
		return n.l.Able(WallTime)
	}
	n.clock.drift(rate)
	return nil
}
