package nemesis

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"limitd/jepsen/history"
	"limitd/jepsen/lab"
)

// fakeNetwork notes cuts, and lets nobody through.
type fakeNetwork struct{ cuts [][]lab.Cut }

func (n *fakeNetwork) Cut(cuts []lab.Cut) error            { n.cuts = append(n.cuts, cuts); return nil }
func (n *fakeNetwork) Shape(map[lab.Cut]lab.Quality) error { return nil }
func (n *fakeNetwork) Sever(a, b string) error             { return nil }
func (n *fakeNetwork) Dial(string, lab.Port, time.Duration) (net.Conn, error) {
	return nil, errors.New("nobody")
}

type fakeLab struct {
	lab.Lab
	net *fakeNetwork
}

func (l *fakeLab) Network() lab.Network    { return l.net }
func (l *fakeLab) Node(id string) lab.Node { return &fakeNode{id: id} }

type fakeNode struct {
	lab.Node
	id string
}

func (n *fakeNode) ID() string { return n.id }

// newEnv is an environment of n members in which every wait is over at once.
func newEnv(t *testing.T, n int) (*Env, *fakeNetwork, context.Context) {
	t.Helper()
	rec, err := history.NewRecorder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	f := &fakeNetwork{}
	ids := []string{"n1", "n2", "n3", "n4", "n5"}[:n]
	e := &Env{Lab: &fakeLab{net: f}, Members: NewMembers(ids...), Recorder: rec,
		Ask: func(string, time.Duration) (net.Conn, error) { return nil, errors.New("nobody") }}
	ctx, end := context.WithCancel(context.Background())
	end()
	return e.As("test", rand.New(rand.NewPCG(1, 1))), f, ctx
}

// reach says which members hear each other, both ways.
func reach(ids []string, cuts []lab.Cut) map[string][]string {
	all := map[string][]string{}
	for _, a := range ids {
		for _, b := range ids {
			cut := slices.ContainsFunc(cuts, func(c lab.Cut) bool { return c.From == a && c.To == b || c.From == b && c.To == a })
			if !cut {
				all[a] = append(all[a], b)
			}
		}
	}
	return all
}

func TestARingLeavesEachAMajorityAndNoTwoTheSame(t *testing.T) {
	ids := []string{"n1", "n2", "n3", "n4", "n5"}
	seen := map[string]bool{}
	for id, others := range reach(ids, ring(ids)) {
		if len(others) != 3 {
			t.Errorf("%s hears %v", id, others)
		}
		seen[strings.Join(others, " ")] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d different majorities", len(seen))
	}
}

// Every nemesis of the network cuts something and leaves nothing cut.
func TestNetworkFaultsCutAndHeal(t *testing.T) {
	for _, n := range network {
		for _, size := range []int{3, 5} {
			e, f, ctx := newEnv(t, size)
			if err := n.Run(ctx, e); err != nil {
				t.Errorf("%s: %v", n.Name, err)
			}
			if n.Name == "sever" {
				continue
			}
			if len(f.cuts) < 2 || len(f.cuts[0]) == 0 || len(f.cuts[len(f.cuts)-1]) != 0 {
				t.Errorf("%s of %d nodes: cuts %v", n.Name, size, f.cuts)
			}
			if n.Name == "bridge" {
				hears := reach(e.Members.List(), f.cuts[0])
				all := 0
				for _, others := range hears {
					if len(others) == size {
						all++
					}
				}
				if all != 1 {
					t.Errorf("bridge of %d nodes: %v", size, hears)
				}
			}
		}
	}
}

func TestFindNamesWhatIsUnknown(t *testing.T) {
	if found, unknown := Find("pause,kill-one"); len(found) != 2 || unknown != "" {
		t.Errorf("%v, %q", found, unknown)
	}
	if _, unknown := Find("pause,nonsense"); unknown != "nonsense" {
		t.Errorf("unknown %q", unknown)
	}
	if found, _ := Find("none"); len(found) != 0 {
		t.Errorf("none are %v", found)
	}
	names := map[string]bool{}
	for _, n := range All {
		if n.Name == "" || n.Group == "" || n.Run == nil || names[n.Name] {
			t.Errorf("nemesis %+v", n)
		}
		names[n.Name] = true
	}
}

func TestAMemberWithoutItsVoteIsNoVoter(t *testing.T) {
	m := NewMembers("n2", "n1")
	if got := m.List(); !slices.Equal(got, []string{"n1", "n2"}) || !m.Votes("n1") || m.Votes("n3") {
		t.Errorf("%v", got)
	}
	m.SetVote("n1", false)
	m.add("n3")
	m.remove("n2")
	if m.Votes("n1") || m.Votes("n2") || !m.Votes("n3") {
		t.Error("votes are wrong")
	}
	m.SetVote("n1", true)
	if !m.Votes("n1") {
		t.Error("the vote is not given back")
	}
}

// The same seed draws the same.
func TestHostileBytesComeFromTheSeed(t *testing.T) {
	a, _, _ := newEnv(t, 3)
	b, _, _ := newEnv(t, 3)
	for range 50 {
		x, y := a.bytes(), b.bytes()
		if string(x) != string(y) || len(x) == 0 {
			t.Fatalf("%q and %q", x, y)
		}
	}
}
