package nemesis

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"limitd/jepsen/lab"
)

const (
	settleTime = 25 * time.Second // from the healing until all members serve
	mendTime   = 20 * time.Second // more, if a node has to come in anew
	goTime     = 20 * time.Second // that a removed node may run on
	lateTime   = time.Minute      // more at most, on a machine that does not keep up
)

// Operate does what an operator does when all faults are over: he starts members that do
// not run, mends one that says that its files cannot be trusted, if they were damaged,
// gives those their vote back that lost it, and empties nodes that were removed. It
// returns when all members serve, or what keeps them from it for too long. Time in which the
// machine did not keep up does not count, nor twice as much after it.
func (e *Env) Operate() error {
	began, more := time.Now(), time.Duration(0)
	late := func() time.Duration {
		if e.Late == nil {
			return 0
		}
		return e.Late()
	}
	for before := late(); ; {
		anew, err := e.operate(time.Since(began))
		if err == nil || errors.Is(err, errHopeless) {
			return err
		}
		if anew {
			more = mendTime
		}
		if time.Since(began) > settleTime+more+min(3*(late()-before), lateTime) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// errHopeless is what no waiting mends.
var errHopeless = errors.New("waiting does not mend that")

// operate does what can be done now, and says what is wrong still, and whether a node is
// on its way in.
func (e *Env) operate(elapsed time.Duration) (anew bool, err error) {
	if err := e.findMembers(); err != nil {
		return false, err
	}
	var wrong []error
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for _, n := range e.Lab.Nodes() {
		id := n.ID()
		if e.Roster.has(id) {
			continue
		}
		if n.Running() {
			if note("%s was removed and runs still", id); elapsed > goTime {
				return false, errors.Join(errors.Join(wrong...), errHopeless)
			}
		} else {
			e.Roster.emptied(id)
			if err := n.Wipe(); err != nil {
				return false, err
			}
		}
	}
	down := false
	for _, id := range e.Roster.List() {
		if e.Lab.Node(id).Running() {
			continue
		}
		down = true
		note("%s had ended", id)
		if code, ended := e.Lab.Node(id).Exited(); ended && code == 3 && e.Roster.coming(id) {
			e.Roster.remove(id) // it was not taken in, or was and is removed: a spare again
			continue
		}
		if err := e.raise(id); err != nil {
			return false, err
		}
	}
	for _, id := range e.Roster.List() {
		anew = anew || e.Roster.joined(id) && !e.Roster.Votes(id)
		if down {
			continue
		}
		f, err := e.Ask.Info(id)
		switch {
		case err != nil:
			note("%s: %w", id, err)
			continue
		case e.Roster.coming(id):
			note("%s is not taken in: it is %s", id, f["raft_role"])
			continue
		case !e.Roster.Votes(id):
			_, err := e.Ask.AskFor(changeTime, id, "RL.CLUSTER", "PROMOTE", id)
			note("%s has no vote (asked for it: %v)", id, err)
			continue
		}
		if _, err := e.Ask.Ask(id, "CL.THROTTLE", "limitd:ready", "0", "1", "1", "0"); err != nil {
			note("%s: %w", id, err)
		}
	}
	if len(wrong) == 0 && len(e.Roster.List()) < e.Wanted {
		if id := e.spare(); id != "" {
			note("too few members")
			e.Roster.join(id)
			return true, errors.Join(errors.Join(wrong...), e.start(id))
		}
	}
	return anew, errors.Join(wrong...)
}

// findMembers asks the leader who is a member and brings the roster up to date. Nodes on
// their way in, which it may not know yet, stay.
func (e *Env) findMembers() error {
	leader := e.Ask.Leader(e.Roster.List())
	if leader == "" {
		return e.raiseAll()
	}
	reply, err := e.Ask.Ask(leader, "RL.CLUSTER", "NODES")
	if err != nil {
		return fmt.Errorf("%s, which leads, lists no members: %w", leader, err)
	}
	found := map[string]bool{}
	rows, _ := reply.([]any)
	for _, row := range rows {
		f := named(row)
		if f["raft_id"] == "" { // in its configuration file, and no member
			continue
		}
		found[f["id"]] = true
		e.Roster.list(f["id"], f["role"] != "nonvoter")
	}
	for _, id := range e.Roster.List() {
		if !found[id] && !e.Roster.coming(id) {
			e.Roster.remove(id)
		}
	}
	return nil
}

// raiseAll starts all members that do not run: nobody leads who could say more.
func (e *Env) raiseAll() error {
	wrong := []error{errors.New("nobody leads")}
	for _, id := range e.Roster.List() {
		if !e.Lab.Node(id).Running() {
			wrong = append(wrong, e.raise(id))
		}
	}
	return errors.Join(wrong...)
}

// raise starts a member that does not run, or does what its last line says if that is
// to come in anew. A node may say that only if its files were damaged.
func (e *Env) raise(id string) error {
	n := e.Lab.Node(id)
	_, ended := n.Exited()
	last := lastLine(n)
	if !ended || !strings.Contains(last, "limitd cluster remove") {
		return e.start(id)
	}
	if !e.Roster.damaged(id) {
		return fmt.Errorf("%s says that it cannot go on with its files, which nobody has damaged: %s: %w", id, last, errHopeless)
	}
	for _, part := range []string{"`limitd cluster remove " + id + " ", "`--join "} {
		if !strings.Contains(last, part) {
			return fmt.Errorf("%s does not say that %q mends it: %s: %w", id, part, last, errHopeless)
		}
	}
	others := e.others(id)
	if _, err := e.Ask.AskFor(changeTime, others[e.Rand.IntN(len(others))], "RL.CLUSTER", "REMOVE", id); err != nil {
		return nil // asked again, if it is a member still
	}
	e.Roster.remove(id)
	if err := n.Wipe(); err != nil {
		return err
	}
	e.Roster.join(id)
	return e.start(id)
}

// lastLine is the last line that a node printed.
func lastLine(n lab.Node) string {
	out := n.Log()
	if c, ok := out.(io.Closer); ok {
		defer c.Close()
	}
	text, err := io.ReadAll(out)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimRight(text, "\n")
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// named is a flat array of names and values as a map.
func named(reply any) map[string]string {
	fields := map[string]string{}
	list, _ := reply.([]any)
	for pair := range slices.Chunk(list, 2) {
		if len(pair) == 2 {
			fields[fmt.Sprint(pair[0])] = fmt.Sprint(pair[1])
		}
	}
	return fields
}
