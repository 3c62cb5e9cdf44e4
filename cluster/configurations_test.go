package cluster

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// Its first configurations may be older than its membership: those of the log's
// first entries, or of a snapshot that was taken before.
func TestANodeOnItsWayInIsNotTakenForRemoved(t *testing.T) {
	n := newTestCluster(t, 1).nodes[0]
	var gone error
	n.cfg.Removed = func(err error) { gone = err }
	var err error
	if n.Node, err = Open(n.cfg, nil); err != nil {
		t.Fatal(err)
	}
	if err := n.joining.set(joinsAsVoter); err != nil {
		t.Fatal(err)
	}
	other := raft.Server{ID: "n9-00000009", Address: "127.0.0.1:1"}
	self := raft.Server{ID: n.serverID(), Address: "127.0.0.1:2", Suffrage: raft.Nonvoter}
	for _, index := range []uint64{1, 110} {
		n.configs.noteCommitted(n.serverID(), index, []raft.Server{other})
		if n.judgeOwnConfiguration(); gone != nil || n.listedAt() != 0 {
			t.Fatalf("configuration %d: %v, listed at %d", index, gone, n.listedAt())
		}
	}
	n.configs.load(n.serverID(), indexedConfiguration{110, []raft.Server{other}}, indexedConfiguration{}) // started again meanwhile
	if n.judgeOwnConfiguration(); gone != nil || n.listedAt() != 0 {
		t.Fatalf("after a restart: %v, listed at %d", gone, n.listedAt())
	}
	n.configs.noteStored(n.serverID(), 115, []raft.Server{other, self})
	if n.judgeOwnConfiguration(); gone != nil || n.listedAt() != 115 {
		t.Fatalf("as a member: %v, listed at %d", gone, n.listedAt())
	}
	n.configs.noteCommitted(n.serverID(), 120, []raft.Server{other})
	if n.judgeOwnConfiguration(); !errors.Is(gone, ErrRemoved) {
		t.Errorf("removed, and it says %v", gone)
	}
}
