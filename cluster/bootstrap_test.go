package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

var (
	three  = []Member{{ID: "n1", Peer: "h1:1"}, {ID: "n2", Peer: "h2:1"}, {ID: "n3", Peer: "h3:1"}}
	listed = []string{"n1", "n2", "n3"}
)

const id1, id2, id3, old1, old2 = "n1-00000001", "n2-00000002", "n3-00000003", "n1-000000ff", "n2-000000ff"

// says is an answer of member n (from 1).
func says(n int, s peerStatus) bootAnswer { return bootAnswer{member: three[n-1], status: &s} }

func silent(n int, err error) bootAnswer { return bootAnswer{member: three[n-1], err: err} }

func emptyNode(raftID string) peerStatus {
	return peerStatus{RaftID: raftID, Empty: true, Listed: listed}
}

func memberOf(raftID string, index uint64, servers ...string) peerStatus {
	s := peerStatus{RaftID: raftID, ClusterID: "0c", Listed: listed, ConfigIndex: index, ConfigCommitted: true}
	for _, id := range servers {
		s.Servers = append(s.Servers, peerServer{RaftID: id, Peer: "h:1", Voter: true})
	}
	return s
}

// uncommitted is a status whose configuration may be taken back, with or without votes.
func uncommitted(s peerStatus, votes bool) peerStatus {
	s.ConfigCommitted = false
	for i := range s.Servers {
		s.Servers[i].Voter = votes
	}
	return s
}

func TestBootstrapDecision(t *testing.T) {
	stranger := &refusal{code: refusedStranger, raftID: id3, text: "n1-00000001 is no member, but n1-000000ff is"}
	for _, c := range []struct {
		name    string
		self    int // 1: the first listed
		answers []bootAnswer
		want    bootAction
		text    []string // in the reason or error
	}{
		{"all are empty, we are first", 1, []bootAnswer{says(2, emptyNode(id2)), says(3, emptyNode(id3))}, bootCreate, nil},
		{"in any order", 1, []bootAnswer{says(3, emptyNode(id3)), says(2, emptyNode(id2))}, bootCreate, nil},
		{"all are empty, another is first", 2, []bootAnswer{says(1, emptyNode(id1)), says(3, emptyNode(id3))}, bootWait, []string{"n1"}},

		{"one is silent", 1, []bootAnswer{says(2, emptyNode(id2)), silent(3, errors.New("connection refused"))}, bootWait, []string{"n3", "connection refused"}},
		{"one was not asked", 1, []bootAnswer{says(2, emptyNode(id2))}, bootWait, []string{"n3"}},
		{"one answers without saying", 1, []bootAnswer{says(2, emptyNode(id2)), silent(3, nil)}, bootWait, []string{"n3"}},
		{"all are silent", 1, []bootAnswer{silent(2, nil), silent(3, nil)}, bootWait, []string{"n2", "n3"}},
		{"one has data and no members yet", 1, []bootAnswer{says(2, emptyNode(id2)), says(3, peerStatus{RaftID: id3, Listed: listed})}, bootWait, []string{"n3 holds data"}},
		{"one is empty and has a cluster id", 1, []bootAnswer{says(2, emptyNode(id2)), says(3, peerStatus{RaftID: id3, Empty: true, ClusterID: "0c", Listed: listed})}, bootWait, []string{"n3 holds data"}},
		{"another node at the address", 1, []bootAnswer{says(2, emptyNode(id3)), says(3, emptyNode(id3))}, bootWait, []string{id3, "n2", "h2:1", "correct the peer addresses"}},
		{"another list", 1, []bootAnswer{says(2, emptyNode(id2)), says(3, peerStatus{RaftID: id3, Empty: true, Listed: []string{"n1", "n3"}})}, bootWait, []string{"n1 n3", "one configuration file"}},
		{"another order, both think they are first", 1, []bootAnswer{says(2, peerStatus{RaftID: id2, Empty: true, Listed: []string{"n2", "n1", "n3"}}), says(3, emptyNode(id3))}, bootWait, []string{"n2 n1 n3"}},

		{"a cluster has us", 2, []bootAnswer{says(1, memberOf(id1, 1, id1, id2, id3)), silent(3, nil)}, bootRun, nil},
		{"a cluster has us, who are first", 1, []bootAnswer{says(2, memberOf(id2, 1, id1, id2, id3)), says(3, emptyNode(id3))}, bootRun, nil},
		{"an older configuration has us not yet", 2, []bootAnswer{says(1, memberOf(id1, 9, id1, id2, id3)), says(3, memberOf(id3, 5, id1, old2, id3))}, bootRun, nil},

		{"a configuration that is not committed has us, without a vote", 2, []bootAnswer{says(1, uncommitted(memberOf(id1, 9, id1, id2), false)), silent(3, nil)}, bootWait, []string{"is being taken in"}},
		{"a configuration that is not committed has us, and needs our vote", 2, []bootAnswer{says(1, uncommitted(memberOf(id1, 9, id1, id2), true)), silent(3, nil)}, bootRun, nil},
		{"one that is committed counts more", 2, []bootAnswer{says(1, uncommitted(memberOf(id1, 9, id1, id2), true)), says(3, memberOf(id3, 5, id1, id3))}, bootWait, []string{"without this node"}},

		{"our disk is new", 2, []bootAnswer{says(1, memberOf(id1, 1, id1, old2, id3)), silent(3, nil)}, bootRefuse, []string{id2, old2, "remove member", "--join"}},
		{"our disk is new, we are first", 1, []bootAnswer{says(2, memberOf(id2, 1, old1, id2, id3)), says(3, emptyNode(id3))}, bootRefuse, []string{id1, old1}},
		{"a member refuses us", 1, []bootAnswer{says(2, emptyNode(id2)), silent(3, fmt.Errorf("peer: %w", stranger))}, bootRefuse, []string{id3, old1}},
		{"a member that lags refuses us, the cluster has us", 1, []bootAnswer{says(2, memberOf(id2, 9, id1, id2, id3)), silent(3, stranger)}, bootRun, nil},
		{"another cluster refuses us", 1, []bootAnswer{says(2, emptyNode(id2)), silent(3, &refusal{code: refusedCluster, raftID: id3, text: "of cluster 02"})}, bootWait, []string{"of cluster 02"}},
		{"a cluster exists without us", 2, []bootAnswer{says(1, memberOf(id1, 1, id1, id3)), says(3, memberOf(id3, 1, id1, id3))}, bootWait, []string{"without this node", "--join"}},
		{"a cluster exists without us, who are first", 1, []bootAnswer{says(2, memberOf(id2, 1, id2, id3)), says(3, emptyNode(id3))}, bootWait, []string{"without this node"}},
		{"we were removed from the newer configuration", 2, []bootAnswer{says(1, memberOf(id1, 9, id1, id3)), says(3, memberOf(id3, 5, id1, old2, id3))}, bootWait, []string{"without this node"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decideBootstrap(three[c.self-1], []string{id1, id2, id3}[c.self-1], three, c.answers)
			if d.action != c.want {
				t.Fatalf("action %d (%s %v), want %d", d.action, d.reason, d.err, c.want)
			}
			if (d.err != nil) != (c.want == bootRefuse) || (d.reason != "") != (c.want == bootWait) {
				t.Errorf("reason %q, error %v", d.reason, d.err)
			}
			for _, want := range c.text {
				if said := d.reason + fmt.Sprint(d.err); !strings.Contains(said, want) {
					t.Errorf("%q is not said: %s", want, said)
				}
			}
			if c.want == bootCreate {
				want := []raft.Server{{ID: id1, Address: "h1:1"}, {ID: id2, Address: "h2:1"}, {ID: id3, Address: "h3:1"}}
				if !slices.Equal(d.servers, want) {
					t.Errorf("servers %v, want %v", d.servers, want)
				}
			}
		})
	}
	if d := decideBootstrap(three[0], id1, three[:1], nil); d.action != bootCreate || len(d.servers) != 1 {
		t.Errorf("a cluster of one: %+v", d)
	}
}

func TestStatusThatIsNoneIsRefused(t *testing.T) {
	for _, s := range []string{
		``, `nonsense`, `[]`, `{}`, `{"raft_id":"n1"}`, `{"raft_id":"n1-0000000\n1"}`, `{"raft_id":"n1-00000001","servers":[{"raft_id":""}]}`,
		`{"raft_id":"n1-00000001","applied":-1}`, `"` + strings.Repeat("x", maxStatus) + `"`,
	} {
		if got, err := parseStatus([]byte(s)); err == nil {
			t.Errorf("%.60s is taken for %+v", s, got)
		}
	}
	if _, err := parseStatus([]byte(`{"raft_id":"n1-00000001","a_later_field":{"x":1}}`)); err != nil {
		t.Errorf("a field that a later release added: %v", err)
	}
}

// fakeNode is a node whose raft is a note that it was started.
type fakeNode struct {
	*peers
	boot bootstrap
	stop chan struct{}
	done chan error

	mu      sync.Mutex
	config  raft.Configuration
	running bool
	created bool
}

func (f *fakeNode) status() peerStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := peerStatus{RaftID: f.boot.RaftID, Empty: len(f.config.Servers) == 0, Listed: nodeIDs(f.boot.Members)}
	s.setConfiguration(indexedConfiguration{1, f.config.Servers}, false)
	return s
}

func (f *fakeNode) known(raftID string) (bool, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.config.Servers {
		if string(s.ID) != raftID && nodeID(string(s.ID)) == nodeID(raftID) {
			return false, string(s.ID)
		}
	}
	return false, ""
}

func (f *fakeNode) start() { go func() { f.done <- f.boot.wait(f.stop) }() }

// fakeNodes are nodes with the given raft ids, that list each other.
func fakeNodes(t *testing.T, log *lockedBuffer, raftIDs ...string) []*fakeNode {
	var nodes []*fakeNode
	var members []Member
	for _, id := range raftIDs {
		f := &fakeNode{stop: make(chan struct{}), done: make(chan error, 1)}
		f.peers = startPeers(t, id, withHandler(kindStatus, answerStatus(func() peerStatus { return f.status() })),
			func(c *peersConfig) { c.Known = f.known })
		f.boot = bootstrap{
			RaftID: id, Logger: slog.New(slog.NewTextHandler(log, nil)), Ask: f.askStatus,
			Joining: func() (bool, string) { return false, "" }, Found: func() bool { return true }, Told: func(*peerStatus) {},
			Run: func() error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.running = true
				return nil
			},
			Create: func(c raft.Configuration) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.running, f.created, f.config = true, true, c
				return nil
			},
		}
		members = append(members, Member{ID: nodeID(id), Peer: f.Addr()})
		nodes = append(nodes, f)
	}
	for i, f := range nodes {
		f.mu.Lock()
		f.boot.Self, f.boot.Members = members[i], members
		f.mu.Unlock()
	}
	return nodes
}

func TestThreeEmptyNodesMakeOneClusterWithTheRaftIDsTheyTold(t *testing.T) {
	var log lockedBuffer
	nodes := fakeNodes(t, &log, id1, id2, id3)
	nodes[1].start()
	nodes[2].start()
	until(t, "the others wait for the first", func() bool { return strings.Count(log.String(), "listed first, makes the cluster") == 2 })
	select {
	case err := <-nodes[1].done:
		t.Fatalf("n2 did not wait: %v", err)
	case err := <-nodes[2].done:
		t.Fatalf("n3 did not wait: %v", err)
	default:
	}
	nodes[0].start()
	for i, f := range nodes {
		if err := <-f.done; err != nil {
			t.Fatal(err)
		}
		if !f.running || f.created != (i == 0) {
			t.Errorf("n%d: running %v, created %v", i+1, f.running, f.created)
		}
	}
	var ids []string
	for _, s := range nodes[0].config.Servers {
		ids = append(ids, string(s.ID))
	}
	if !slices.Equal(ids, []string{id1, id2, id3}) {
		t.Errorf("the cluster is %v", ids)
	}
}

func TestNodeWithANewDiskIsToldSoAndDoesNotRun(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	nodes := fakeNodes(t, &log, id1, id2, id3)
	// The cluster was made when n1 had another disk. n3 is down.
	nodes[1].config = raft.Configuration{Servers: []raft.Server{{ID: old1}, {ID: id2}, {ID: id3}}}
	nodes[2].Close()
	nodes[0].start()
	select {
	case err := <-nodes[0].done:
		if err == nil || !strings.Contains(err.Error(), id1) || !strings.Contains(err.Error(), old1) || !strings.Contains(err.Error(), "--join") {
			t.Errorf("%v; want both raft ids and what to do", err)
		}
	case <-time.After(refusalStands + 5*time.Second):
		t.Fatal("it goes on asking")
	}
	if nodes[0].running {
		t.Error("raft runs")
	}
}

func TestWaitingForTheClusterEndsWhenToldAndIsLoggedOnce(t *testing.T) {
	var log lockedBuffer
	nodes := fakeNodes(t, &log, id1, id2)
	nodes[1].Close()
	nodes[0].start()
	until(t, "it waits", func() bool { return strings.Contains(log.String(), "waiting for the cluster") })
	time.Sleep(3 * pollEvery)
	close(nodes[0].stop)
	if err := <-nodes[0].done; !errors.Is(err, errStopped) {
		t.Errorf("%v, want errStopped", err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want 1:\n%s", n, log.String())
	}
}
