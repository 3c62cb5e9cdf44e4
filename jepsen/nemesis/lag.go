package nemesis

import (
	"context"
	"strconv"
	"time"

	"limitd/jepsen/lab"
)

// lagEntries is how far a node is left behind, if there is load enough for it: several
// times what nodes keep of the log behind a snapshot (package run starts them so), so
// that it needs one.
const lagEntries = 1500

var lags = []Nemesis{
	{"lag", "a snapshot that lacks something of the state, and a log that does not fit to it", Links, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		id := e.victim() // an isolated leader has entries of its own, which nobody wants
		return e.during([]string{id}, "cut off until it needs a snapshot", func() error {
			if err := e.Lab.Network().Cut(split([]string{id}, e.others(id), lab.PeerPort)); err != nil {
				return err
			}
			e.leaveBehind(ctx, id)
			return e.Lab.Network().Cut(nil)
		})
	}},
	{"lag-dead", "a snapshot that comes to a node that was just started", Nodes, nil, func(ctx context.Context, e *Env) error {
		id := e.victim()
		return e.during([]string{id}, "down until it needs a snapshot", func() error {
			if err := e.Lab.Node(id).Kill(); err != nil {
				return err
			}
			e.leaveBehind(ctx, id)
			return e.start(id)
		})
	}},
}

// leaveBehind waits until the others are far ahead of where a node is now, 15 s at most.
func (e *Env) leaveBehind(ctx context.Context, id string) {
	newest := func() (most uint64) {
		for _, other := range e.others(id) {
			f, err := e.Ask.Info(other)
			if n, _ := strconv.ParseUint(f["raft_commit_index"], 10, 64); err == nil {
				most = max(most, n)
			}
		}
		return most
	}
	from := newest()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline) && sleep(ctx, 100*time.Millisecond); {
		switch now := newest(); {
		case from == 0:
			from = now
		case now > from+lagEntries:
			return
		}
	}
}
