package nemesis

import (
	"context"
	"time"

	"limitd/jepsen/lab"
)

var disks = []Nemesis{
	{"disk-full-leader", "a full disk that stops everybody", Nodes, []lab.Ability{lab.DiskFull}, func(ctx context.Context, e *Env) error {
		return e.fill(ctx, e.leader())
	}},
	{"disk-full-follower", "a full disk that stops more than its node", Nodes, []lab.Ability{lab.DiskFull}, func(ctx context.Context, e *Env) error {
		return e.fill(ctx, e.follower())
	}},
	{"disk-stall-leader", "a leader whose disk hangs and who goes on leading", Nodes, []lab.Ability{lab.DiskFull}, func(ctx context.Context, e *Env) error {
		return e.stall(ctx, e.leader())
	}},
	{"disk-stall-follower", "a follower whose disk hangs and that gets no entry ever again", Nodes, []lab.Ability{lab.DiskFull}, func(ctx context.Context, e *Env) error {
		return e.stall(ctx, e.follower())
	}},
	{"disk-slow-leader", "a leader that takes its own disk for the network", Nodes, []lab.Ability{lab.SlowDisk}, func(ctx context.Context, e *Env) error {
		return e.inject(ctx, e.leader(), "fdatasync:delay_enter=50000", "a sync takes 50 ms more", 6*time.Second)
	}},
	{"disk-slow-follower", "a majority that waits for the slowest", Nodes, []lab.Ability{lab.SlowDisk}, func(ctx context.Context, e *Env) error {
		return e.inject(ctx, e.follower(), "fdatasync:delay_enter=100000", "a sync takes 100 ms more", 6*time.Second)
	}},
	{"disk-error-leader", "a sync that failed once, and is believed when it is tried again", Nodes, []lab.Ability{lab.SlowDisk}, func(ctx context.Context, e *Env) error {
		return e.inject(ctx, e.leader(), "fdatasync:error=EIO:when=1", "the next sync fails", 2*time.Second)
	}},
	{"disk-error-follower", "an acknowledgement of what could not be written", Nodes, []lab.Ability{lab.SlowDisk}, func(ctx context.Context, e *Env) error {
		return e.inject(ctx, e.follower(), "fdatasync:error=EIO:when=1", "the next sync fails", 2*time.Second)
	}},
}

func (e *Env) fill(ctx context.Context, id string) error {
	n := e.Lab.Node(id)
	return e.during([]string{id}, "no space left", func() error {
		if err := n.Fill(0); err != nil {
			return err
		}
		e.wait(ctx, time.Second, 6*time.Second)
		return n.Drain()
	})
}

// stall lets writes hang for less, and for more, than the node bears (raft.disk_stall).
func (e *Env) stall(ctx context.Context, id string) error {
	n := e.Lab.Node(id)
	return e.during([]string{id}, "writes hang", func() error {
		if err := n.Stall(true); err != nil {
			return err
		}
		e.wait(ctx, 500*time.Millisecond, 8*time.Second)
		return n.Stall(false)
	})
}

// inject makes system calls of a node on its log misbehave.
func (e *Env) inject(ctx context.Context, id, spec, detail string, most time.Duration) error {
	n := e.Lab.Node(id)
	return e.during([]string{id}, detail, func() error {
		if err := n.Inject(spec); err != nil {
			if !n.Running() {
				return nil // it ended by itself before strace had it
			}
			return err
		}
		e.wait(ctx, most/2, most)
		return n.Inject("")
	})
}
