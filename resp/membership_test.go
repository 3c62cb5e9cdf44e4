package resp

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestChangesArriveAsTheyWereAsked(t *testing.T) {
	s := newSession(t, Config{})
	for _, c := range []struct {
		args []string
		want Change
	}{
		{[]string{"JOIN", "n4-0a1b2c3d", "127.0.0.1:7384"}, Change{Op: ChangeJoin, ID: "n4-0a1b2c3d", Peer: "127.0.0.1:7384"}},
		{[]string{"join", "n4", "[::1]:7384", "nonVoter"}, Change{Op: ChangeJoin, ID: "n4", Peer: "[::1]:7384", NonVoter: true}},
		{[]string{"PROMOTE", "n4"}, Change{Op: ChangePromote, ID: "n4"}},
		{[]string{"PROMOTE", "n4", "FORCE"}, Change{Op: ChangePromote, ID: "n4", Force: true}},
		{[]string{"DEMOTE", "n4", "force"}, Change{Op: ChangeDemote, ID: "n4", Force: true}},
		{[]string{"REMOVE", "force"}, Change{Op: ChangeRemove, ID: "force"}}, // an id comes first
		{[]string{"REMOVE", "n4", "FORCE"}, Change{Op: ChangeRemove, ID: "n4", Force: true}},
		{[]string{"LEAVE"}, Change{Op: ChangeLeave}},
		{[]string{"LEAVE", "FORCE"}, Change{Op: ChangeLeave, Force: true}},
		{[]string{"TRANSFER"}, Change{Op: ChangeTransfer}},
		{[]string{"TRANSFER", "n2"}, Change{Op: ChangeTransfer, ID: "n2"}},
	} {
		s.admin.changes = nil
		if got := s.do(append([]string{"RL.CLUSTER"}, c.args...)...); got != "+OK\r\n" {
			t.Errorf("%q: %q", c.args, got)
		}
		if !slices.Equal(s.admin.changes, []Change{c.want}) {
			t.Errorf("%q asked for %+v, want %+v", c.args, s.admin.changes, c.want)
		}
	}
}

// TestWrongArgumentsChangeNothing: a misspelt FORCE must not become a plain change.
func TestWrongArgumentsChangeNothing(t *testing.T) {
	s := newSession(t, Config{})
	for _, args := range [][]string{
		{"JOIN"}, {"JOIN", "n4"}, {"JOIN", "", "127.0.0.1:1"}, {"JOIN", "n4", "127.0.0.1:65536"}, {"JOIN", "n4", "127.0.0.1:1", "VOTER"},
		{"PROMOTE"}, {"PROMOTE", ""}, {"DEMOTE", "n4", "NONVOTER"}, {"REMOVE", "n4", "FORCED"}, {"REMOVE", "n4", "FORCE", "x"},
		{"LEAVE", "n4"}, {"LEAVE", "FORCE", "FORCE"}, {"TRANSFER", "n2", "FORCE"},
	} {
		if got := s.do(append([]string{"RL.CLUSTER"}, args...)...); got == "" || got[0] != '-' {
			t.Errorf("%q: %q, want an error", args, got)
		}
	}
	if len(s.admin.changes) > 0 {
		t.Errorf("asked for %+v", s.admin.changes)
	}
}

// TestReasonsComeWithTheirCode: a program that joins repeats -TRYAGAIN and gives up on -ERR.
func TestReasonsComeWithTheirCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("n3 does not answer\r\nnow"), "-ERR remove n2: n3 does not answer  now\r\n"},
		{fmt.Errorf("no leader is known: %w", ErrNotNow), "-TRYAGAIN remove n2: no leader is known: not now\r\n"},
	} {
		s := newSession(t, Config{})
		s.admin.err = c.err
		if got := s.do("RL.CLUSTER", "REMOVE", "n2"); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
