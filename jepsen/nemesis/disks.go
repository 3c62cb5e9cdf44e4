package nemesis

import (
	"context"
	"errors"
	"time"

	"limitd/jepsen/lab"
)

var disks = []Nemesis{
	{"disk-full", "a full disk that stops everybody", "process", []lab.Ability{lab.DiskFull}, func(ctx context.Context, e *Env) error {
		n := e.victim()
		e.begin([]string{n.ID()}, "no space left")
		err := n.Fill(0)
		e.wait(ctx, time.Second, 5*time.Second)
		err = errors.Join(err, n.Drain())
		e.end([]string{n.ID()}, "")
		return err
	}},
	{"disk-stall", "a leader whose disk hangs and who goes on leading", "process", []lab.Ability{lab.DiskFull}, func(ctx context.Context, e *Env) error {
		n := e.victim()
		e.begin([]string{n.ID()}, "writes hang")
		err := n.Stall(true)
		e.wait(ctx, 500*time.Millisecond, 6*time.Second)
		err = errors.Join(err, n.Stall(false))
		e.end([]string{n.ID()}, "")
		return err
	}},
	{"disk-slow", "", "process", []lab.Ability{lab.SlowDisk}, func(ctx context.Context, e *Env) error {
		return e.inject(ctx, "fdatasync:delay_enter=100000", 4*time.Second)
	}},
	{"disk-error", "an fsync that fails once, and is believed when it is tried again", "process", []lab.Ability{lab.SlowDisk}, func(ctx context.Context, e *Env) error {
		return e.inject(ctx, "fdatasync:error=EIO:when=1", 2*time.Second)
	}},
}

// inject makes system calls of a node on its log misbehave.
func (e *Env) inject(ctx context.Context, spec string, d time.Duration) error {
	n := e.victim()
	e.begin([]string{n.ID()}, spec)
	if err := n.Inject(spec); err != nil {
		return err
	}
	e.wait(ctx, d/2, d)
	err := n.Inject("")
	e.end([]string{n.ID()}, "")
	return err
}
