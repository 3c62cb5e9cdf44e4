package e2e

import (
	"context"
	"slices"
	"syscall"
	"time"
)

// operation is one thing that an operator does. It is done again and again until
// it has worked, as an operator would, because nodes are killed meanwhile.
type operation struct {
	name string
	able func(*churn) bool
	do   func(*churn)
}

var operations = []operation{
	{"join", (*churn).hasRoom, (*churn).join},
	{"join as a non-voter", (*churn).hasRoom, (*churn).joinNonVoter},
	{"promote", (*churn).hasNonVoter, (*churn).promote},
	{"demote", (*churn).hasSpareVoter, (*churn).demote},
	{"leave", (*churn).hasSpare, (*churn).leave},
	{"remove", (*churn).hasSpare, (*churn).remove},
	{"remove a dead node", (*churn).hasSpare, (*churn).removeDead},
	{"replace a disk", (*churn).always, (*churn).replaceDisk},
	{"transfer", (*churn).always, (*churn).transfer},
	{"restart all in turn", (*churn).always, (*churn).restartAll},
	{"power cut", (*churn).always, (*churn).powerCut},
	{"back up", (*churn).always, (*churn).backUp},
}

func (w *churn) always() bool        { return true }
func (w *churn) hasRoom() bool       { return len(w.with(isFree)) > 0 && w.voters() < 5 }
func (w *churn) hasNonVoter() bool   { return len(w.members()) > w.voters() && w.voters() < 5 }
func (w *churn) hasSpareVoter() bool { return w.voters() > 3 }
func (w *churn) hasSpare() bool      { return len(w.members()) > 3 }

// step does one operation: of those that can be done, one that was done least, or any.
func (w *churn) step() {
	w.t.Helper()
	able := slices.DeleteFunc(slices.Clone(operations), func(op operation) bool { return !op.able(w) })
	w.rng.Shuffle(len(able), func(i, j int) { able[i], able[j] = able[j], able[i] })
	if w.rng.IntN(4) > 0 {
		slices.SortStableFunc(able, func(a, b operation) int { return w.done[a.name] - w.done[b.name] })
	}
	op, began := able[0], time.Now()
	op.do(w)
	w.done[op.name]++
	w.took[op.name] = max(w.took[op.name], time.Since(began))
	w.t.Logf("%6.1fs %s in %.1fs", time.Since(w.began).Seconds(), op.name, time.Since(began).Seconds())
}

func (w *churn) join()         { w.joinAs("voter") }
func (w *churn) joinNonVoter() { w.joinAs("nonvoter", "--non-voter") }

// joinAs starts a node in a free slot and waits until it is what it wants to be.
func (w *churn) joinAs(role string, flags ...string) {
	free := w.with(isFree)
	w.takeIn(free[w.rng.IntN(len(free))], role, flags...)
}

func (w *churn) takeIn(s *slot, role string, flags ...string) {
	s.proc.Lock()
	s.args = append(append(slices.Clone(s.base), "--join", w.any(s).resp), flags...)
	w.start(s.node)
	s.proc.Unlock()
	w.set(s, "nonvoter")
	w.until(s.id+" is a "+role, nil, func() bool {
		l := w.leading()
		return l != nil && l.r.members()[s.id].is(role) && s.r.members()[s.id].is(role)
	})
	w.set(s, role)
}

func (w *churn) promote() {
	all := w.with(func(s *slot) bool { return s.role == "nonvoter" })
	w.change(all[w.rng.IntN(len(all))], "PROMOTE", "voter")
}

func (w *churn) demote() { w.change(w.spare(isVoter), "DEMOTE", "nonvoter") }

// change asks any member to give a member another role.
func (w *churn) change(s *slot, verb, role string) {
	w.until(verb+" "+s.id, func() error { return w.any(nil).ask(verb, s.id) }, nil)
	w.set(s, role)
}

// spare is a member that can go, half the time the leader.
func (w *churn) spare(ok func(*slot) bool) *slot {
	voters := w.voters()
	all := w.with(func(s *slot) bool { return s.role != "" && ok(s) && (s.role != "voter" || voters > 3) })
	if l := w.leading(); l != nil && slices.Contains(all, l) && w.rng.IntN(2) == 0 {
		return l
	}
	return all[w.rng.IntN(len(all))]
}

func (w *churn) leave() {
	s := w.spare(isMember)
	// Its last answer may be lost when it is killed: then the others tell.
	w.letGo(s, func() error { return s.ask("LEAVE") }, func() bool { return w.isForgotten(s) })
	w.awaitEnd(s, 0, 3)
	w.empty(s)
}

func (w *churn) remove() {
	s := w.spare(isMember)
	w.letGo(s, func() error { return w.any(s).ask("REMOVE", s.id) }, nil)
	w.awaitEnd(s, 3)
	if w.rng.IntN(2) == 0 { // started again, it says the same
		s.proc.Lock()
		w.start(s.node)
		s.proc.Unlock()
		w.awaitEnd(s, 3)
	}
	w.empty(s)
}

func (w *churn) removeDead() {
	s := w.spare(isMember)
	w.killForGood(s)
	w.letGo(s, func() error { return w.any(s).ask("REMOVE", s.id) }, nil)
	w.putUp(s)
	w.empty(s)
}

// replaceDisk brings a node back at the same address with an empty directory.
func (w *churn) replaceDisk() {
	all := w.members()
	s := all[w.rng.IntN(len(all))]
	role, flags := s.role, []string(nil)
	if role == "nonvoter" {
		flags = []string{"--non-voter"}
	}
	w.killForGood(s)
	w.letGo(s, func() error { return w.any(s).ask("REMOVE", s.id) }, nil)
	w.putUp(s)
	w.empty(s)
	w.takeIn(s, role, flags...)
}

func (w *churn) transfer() {
	ids := []string{""}
	for _, s := range w.with(isVoter) {
		ids = append(ids, s.id)
	}
	id := ids[w.rng.IntN(len(ids))]
	w.until("TRANSFER "+id, func() error {
		if id == "" {
			return w.any(nil).ask("TRANSFER")
		}
		return w.any(nil).ask("TRANSFER", id)
	}, nil)
}

// restartAll stops each member in order and starts it again.
func (w *churn) restartAll() {
	for _, s := range w.members() {
		w.awaitTakeDown(s)
		s.proc.Lock()
		s.cmd.Process.Signal(syscall.SIGTERM)
		w.startAgain(s)
		s.proc.Unlock()
		w.awaitAnswer(s)
		w.putUp(s)
	}
}

// powerCut kills all members at once, and starts them again.
func (w *churn) powerCut() {
	all := w.members()
	for _, s := range all {
		s.proc.Lock()
	}
	for _, s := range all {
		s.cmd.Process.Signal(syscall.SIGKILL)
	}
	for _, s := range all {
		<-s.process.done
		w.start(s.node)
		s.proc.Unlock()
	}
	for _, s := range all {
		w.awaitAnswer(s)
	}
}

// backUp saves the state on any member. From then on a start goes on from there,
// and not from the beginning of the log.
func (w *churn) backUp() {
	w.until("RL.SNAPSHOT SAVE", func() error {
		return w.any(nil).r.Do(context.Background(), "RL.SNAPSHOT", "SAVE").Err()
	}, nil)
}
