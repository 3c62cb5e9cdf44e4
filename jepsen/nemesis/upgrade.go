package nemesis

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"limitd/jepsen/lab"
)

const (
	downTime  = 150 * time.Millisecond // between two processes: so long that all who watch have seen that there is none
	readyTime = 5 * time.Second        // that a restarted node is waited for before the next one's turn
	mixedTime = 6 * time.Second        // once in each upgrade: service is due, as if all were on one binary
)

// needsNewer is in the last line of a binary that was given what only a newer one reads.
const needsNewer = "this limitd reads"

var upgrades = []Nemesis{
	{"upgrade", "a file or a frame of the older binary that the newer one takes for something else, or an entry that a node which is older still does not read", Nodes, []lab.Ability{lab.Older},
		func(ctx context.Context, e *Env) error { return e.upgrade(ctx, false) }},
	{"downgrade", "what the newer binary leaves behind and the older one misreads, or a leader that has forgotten that a node went back", Nodes, []lab.Ability{lab.Older},
		func(ctx context.Context, e *Env) error { return e.upgrade(ctx, true) }},
}

// roll is the order in which the nodes change their binary, and which are killed.
type roll struct {
	order []string
	kills []bool
}

func (e *Env) roll() (r roll) {
	r.order = e.everybody()
	for range r.order {
		r.kills = append(r.kills, e.Rand.IntN(4) == 0)
	}
	return r
}

// upgrade has all members on the older binary, which found the cluster or are rolled
// back to it, and then rolls them on to the newer one. With back, one that was on the
// newer one already goes back while others have not been there yet: there is a way back
// as long as one member is older, for the leader writes what all of them read.
//
// Where there is no way back, since the formats differ and all members were on the newer
// one, the first that is to go back must say so, and that is all.
func (e *Env) upgrade(ctx context.Context, back bool) error {
	away, on := e.roll(), e.roll()
	rest := 1 + e.Rand.IntN(len(on.order)-1) // so many are newer at least, of which one may go back
	turn := 2 + e.Rand.IntN(len(on.order)-2)
	who, killed := on.order[e.Rand.IntN(turn)], e.Rand.IntN(4) == 0
	founded := e.allOlder()
	if !founded {
		if err := e.rollBack(ctx, away); err != nil {
			return err
		}
	}
	if e.allOlder() {
		e.wait(ctx, 2*time.Second, 4*time.Second) // it is to write something of its own
	}
	for i, id := range on.order {
		if back && i == turn && ctx.Err() == nil {
			if err := e.restartAs(who, true, killed, !founded); err != nil {
				return err
			}
			e.wait(ctx, 0, time.Second)
		}
		if i == rest && e.Lab.Node(id).Older() {
			e.mix(ctx, on.order[:i], id)
		}
		if err := e.restartAs(id, false, on.kills[i], !founded); err != nil {
			return err
		}
		e.wait(ctx, 0, time.Second)
	}
	return e.restartAs(who, false, false, true)
}

// mix leaves a mixed cluster alone, led by one that is newer: what it writes and sends
// must be for those who are older too.
func (e *Env) mix(ctx context.Context, upgraded []string, older string) {
	if i := slices.IndexFunc(upgraded, func(id string) bool { return !e.Lab.Node(id).Older() }); i >= 0 {
		e.Ask.AskFor(2*time.Second, older, "RL.CLUSTER", "TRANSFER", upgraded[i]) // a refusal is an answer
	}
	e.wait(ctx, mixedTime, mixedTime)
}

// rollBack takes the members to the older binary, until one cannot go.
func (e *Env) rollBack(ctx context.Context, r roll) error {
	for i, id := range r.order {
		if err := e.restartAs(id, true, r.kills[i], true); err != nil {
			return err
		}
		if !e.Lab.Node(id).Older() || !e.wait(ctx, 0, time.Second) {
			return nil
		}
	}
	return nil
}

func (e *Env) allOlder() bool {
	return !slices.ContainsFunc(e.Roster.List(), func(id string) bool { return !e.Lab.Node(id).Older() })
}

// restartAs ends a node that has not the binary yet, starts it with that, and waits for a
// while until it serves. newer says that the cluster was on the newer binary before: an
// older one may refuse what that wrote, and the node has the newer one again then.
func (e *Env) restartAs(id string, older, kill, newer bool) error {
	n := e.Lab.Node(id)
	if n.Older() == older || e.Roster.coming(id) {
		return nil
	}
	how, to := "SIGTERM", "to the newer binary"
	if kill {
		how = "SIGKILL"
	}
	if older {
		to = "back to the older binary"
	}
	return e.during([]string{id}, how+", "+to, func() error {
		if !n.Running() {
			e.judgeEnd(id, newer)
		} else if err := e.end(id, kill); err != nil {
			return err
		}
		time.Sleep(downTime)
		if !older {
			err := e.start(id)
			e.awaitReady(id)
			return err
		}
		if err := e.startOlder(id); err != nil {
			return err
		}
		if e.awaitReady(id); n.Running() {
			return nil
		}
		e.judgeEnd(id, newer)
		return e.start(id)
	})
}

func (e *Env) end(id string, kill bool) error {
	if kill {
		return e.Lab.Node(id).Kill()
	}
	return e.stop(id)
}

// judgeEnd is for a node that ended when nobody asked it to: it was removed or damaged
// meanwhile, or is an older one that met what it does not read, if that can be.
func (e *Env) judgeEnd(id string, newer bool) {
	says := lastLine(e.Lab.Node(id))
	mayRefuse := newer && e.Lab.Node(id).Older() && strings.Contains(says, needsNewer)
	if !mayRefuse && !e.Roster.damaged(id) && !strings.Contains(says, "removed") {
		e.complain("%s has ended by itself: %s", id, says)
	}
}

// awaitReady waits until a node serves, has ended, or has had its time.
func (e *Env) awaitReady(id string) {
	for deadline := time.Now().Add(readyTime); time.Now().Before(deadline) && e.Lab.Node(id).Running(); {
		if f, err := e.Ask.Info(id); err == nil && f["ready"] == "1" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Found starts the first members, with the older binary if they are to be upgraded.
func (e *Env) Found(older bool) error {
	start := e.start
	if older {
		start = e.startOlder
	}
	for _, id := range e.Roster.List() {
		if err := start(id); err != nil {
			return err
		}
	}
	return nil
}

// Upgrade is the one of all with which a run begins, whose members are on the older
// binary then; false if there is none. A run for which it was asked begins so always,
// another one now and then.
func Upgrade(r *rand.Rand, all []Nemesis, asked bool) (Nemesis, bool) {
	can := slices.DeleteFunc(slices.Clone(all), func(n Nemesis) bool { return !slices.Contains(n.Needs, lab.Older) })
	now := r.IntN(4) == 0 || asked
	if len(can) == 0 || !now {
		return Nemesis{}, false
	}
	return can[r.IntN(len(can))], true
}
