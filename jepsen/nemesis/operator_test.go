package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const refusal = "error: raft log is damaged. To replace it: `limitd cluster remove n2 --addr n1:6380`, `mv data data.damaged-1`, and start this node with `--join n1:6380` (or another member that is well)"

func TestADamagedNodeIsMendedByWhatItsLastLineSays(t *testing.T) {
	inBubble(t, "", func(t *testing.T, _ context.Context) {
		e, l := newEnv(t, 3, 0)
		n := l.node("n2")
		n.running, n.code, n.says = false, 1, refusal // 3 if it ran already
		if !e.Roster.damage("n2") {
			t.Fatal("one of three may be damaged")
		}
		if e.Roster.damage("n3") {
			t.Fatal("two of three may not")
		}
		if err := e.Operate(); err != nil {
			t.Fatal(err)
		}
		if !n.running || n.wiped == 0 || !slices.Contains(l.asked, "RL.CLUSTER REMOVE n2") {
			t.Errorf("n2 runs: %v, was emptied %d times; asked: %q", n.running, n.wiped, l.asked)
		}
		if e.Roster.damaged("n2") || !e.Roster.damage("n3") {
			t.Error("a node that came in anew counts as damaged still")
		}
	})
}

// A node that refuses its own files without a reason has lost something, or says what
// is not so.
func TestANodeThatNobodyDamagedMayNotAskToBeMended(t *testing.T) {
	inBubble(t, "", func(t *testing.T, _ context.Context) {
		e, l := newEnv(t, 3, 0)
		n := l.node("n2")
		n.running, n.code, n.says = false, 3, refusal
		if err := e.Operate(); !errors.Is(err, errHopeless) || !strings.Contains(err.Error(), "nobody has damaged") {
			t.Errorf("%v", err)
		}
		if n.wiped > 0 {
			t.Error("and its disk was emptied")
		}
	})
}

func TestARefusalThatDoesNotSayWhatToDoIsReported(t *testing.T) {
	inBubble(t, "", func(t *testing.T, _ context.Context) {
		e, l := newEnv(t, 3, 0)
		l.node("n2").running, l.node("n2").code = false, 3
		l.node("n2").says = "error: raft log is damaged. Call limitd cluster remove"
		e.Roster.damage("n2")
		if err := e.Operate(); !errors.Is(err, errHopeless) {
			t.Errorf("%v", err)
		}
	})
}

func TestWhoIsAMemberTheClusterSays(t *testing.T) {
	inBubble(t, "", func(t *testing.T, _ context.Context) {
		e, l := newEnv(t, 3, 2)
		delete(l.members, "n3")
		l.node("n3").running = false
		l.members["n4"], l.node("n4").running = "nonvoter", true
		if err := e.Operate(); err != nil {
			t.Fatal(err)
		}
		if got := e.Roster.List(); !slices.Equal(got, []string{"n1", "n2", "n4"}) || !e.Roster.Votes("n4") {
			t.Errorf("members %v, n4 votes: %v", got, e.Roster.Votes("n4"))
		}
		if l.node("n3").wiped == 0 {
			t.Error("n3 was removed and keeps what it had")
		}
	})
}

func TestARemovedNodeMayNotRunOn(t *testing.T) {
	inBubble(t, "", func(t *testing.T, _ context.Context) {
		e, l := newEnv(t, 4, 0)
		e.Wanted = 3
		delete(l.members, "n4")
		if err := e.Operate(); err == nil || !strings.Contains(err.Error(), "n4 was removed and runs still") {
			t.Errorf("%v", err)
		}
	})
}

func TestAClusterThatShrankGrowsAgain(t *testing.T) {
	inBubble(t, "", func(t *testing.T, _ context.Context) {
		e, l := newEnv(t, 3, 1)
		delete(l.members, "n3")
		l.node("n3").running = false
		if err := e.Operate(); err != nil {
			t.Fatal(err)
		}
		if e.Roster.voters() != 3 {
			t.Errorf("voters: %v", e.Roster.List())
		}
	})
}

// One that was taken in and removed again, before anybody looked, says so and would be
// started for ever.
func TestANewcomerThatWasRemovedIsASpareAgain(t *testing.T) {
	inBubble(t, "", func(t *testing.T, _ context.Context) {
		e, l := newEnv(t, 3, 1)
		e.Roster.join("n4")
		l.node("n4").code, l.node("n4").says = 3, "limitd: this node has stopped itself: n4 was removed"
		if err := e.Operate(); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(e.Roster.List(), "n4") || l.node("n4").wiped == 0 {
			t.Errorf("members %v", e.Roster.List())
		}
	})
}

func TestAMachineThatDoesNotKeepUpIsGivenTime(t *testing.T) {
	for _, late := range []time.Duration{0, 5 * time.Second} {
		inBubble(t, late.String(), func(t *testing.T, _ context.Context) {
			e, l := newEnv(t, 3, 0)
			began := time.Now()
			e.Late = func() time.Duration { return min(late, time.Since(began)/10) }
			for _, n := range l.nodes { // nobody leads for 35 s
				l.members[n.id] = "nonvoter"
			}
			time.AfterFunc(35*time.Second, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				for _, n := range l.nodes {
					l.members[n.id] = "voter"
				}
			})
			if err := e.Operate(); (err == nil) != (late > 0) {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			time.Sleep(time.Minute)
		})
	}
}
