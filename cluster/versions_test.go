package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"limitd/fsm"
	"limitd/snapshot"
)

const nextEntry = fsm.ReadsEntry + 1 // a version that no node of this build reads

// inVersion is the entry under another version.
func inVersion(version byte, entry []byte) []byte {
	b := append([]byte{version}, entry[1:len(entry)-4]...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// reading makes a node one that reads no more than v: what it tells, and what it takes into its log.
func reading(v versions) func(*Node) {
	return func(n *Node) {
		n.reads = v
		n.logs.readable = func(data []byte) error {
			if len(data) > 0 && data[0] > v.entry {
				return fmt.Errorf("%w %d", fsm.ErrVersion, data[0])
			}
			return nil
		}
	}
}

// wantNewer checks that a node stopped, or did not start, over what a newer limitd wrote, and said all that one must know.
func wantNewer(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, ErrVersion) {
		t.Errorf("%v is no ErrVersion", err)
		return
	}
	if n := strings.Count(err.Error(), ErrVersion.Error()); n != 1 {
		t.Errorf("that a newer one is needed is said %d times: %v", n, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not said: %v", w, err)
		}
	}
}

func unknownEntry(index uint64) string {
	return fmt.Sprintf("entry %d of the log: unknown entry version %d, this limitd reads versions up to %d: a newer one wrote the entry; start this node with the limitd that the other nodes run",
		index, nextEntry, fsm.ReadsEntry)
}

// The nodes that read a new entry commit it without the one that does not, which stops
// before the entry is in its log: it can neither acknowledge it nor lead with it.
func TestNodeStopsBeforeItStoresAnEntryThatItDoesNotRead(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	var victim atomic.Pointer[Node]
	for _, tn := range c.nodes {
		c.start(tn, func(n *Node) {
			n.logs.readable = func(data []byte) error {
				if victim.Load() == n {
					return fsm.CheckVersion(data)
				}
				return nil
			}
		})
	}
	put(t, c.leader(), "before")
	var leader *testNode
	var turn fsm.Turn
	eventually(t, "the turn of a leader", func() (ok bool) {
		leader = c.leader()
		var err error
		turn, err = leader.Begin()
		return err == nil
	})
	old := c.others(leader)[0]
	eventually(t, "the batch on the victim", func() bool { return has(old, "before") })
	victim.Store(old.Node)
	var last uint64
	for {
		last, _ = leader.logs.LastIndex() // and nobody proposes while the turn is held
		if _, o := leader.Commit(inVersion(nextEntry, putEntry(turn, "after"))); o != fsm.Refused {
			break
		}
		eventually(t, "the turn of another leader", func() bool { // it did not lead any more
			leader = c.leader(old)
			var err error
			turn, err = leader.Begin()
			return err == nil
		})
	}
	eventually(t, "the victim to stop", func() bool { return old.fatalReason() != nil })
	wantNewer(t, old.fatalReason(), unknownEntry(last+1))
	if old.Leading() {
		t.Error("it leads")
	}
	var l raft.Log
	if err := old.logs.file.GetLog(last+1, &l); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("the entry is in its log: %v", err)
	}
	if err := old.logs.file.GetLog(last, &l); err != nil {
		t.Errorf("the entry before is not: %v", err)
	}
}

// What is found in the data directory at a start is judged before anything runs.
func TestNodeDoesNotStartWithWhatItDoesNotRead(t *testing.T) {
	t.Parallel()
	// A stopped cluster of one, and the index of its last batch. change may alter its log.
	stopped := func(t *testing.T, save bool) (tn *testNode, last uint64) {
		c := startTestCluster(t, 1)
		tn = c.leader()
		put(t, tn, "k")
		if save {
			if _, err := tn.SaveSnapshot(); err != nil {
				t.Fatal(err)
			}
		}
		last, _ = tn.logs.LastIndex()
		if err := tn.Close(); err != nil {
			t.Fatal(err)
		}
		return tn, last
	}
	rewrite := func(t *testing.T, tn *testNode, from, to uint64) {
		s, _ := openTestLogOf(t, tn.cfg.DataDir, tn.cfg.LogStore, func(err error) { t.Error(err) })
		last, err := s.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		var logs []*raft.Log
		for i := from; i <= to; i++ {
			l := raft.Log{Index: i, Term: 2, Type: raft.LogCommand, Data: fsm.AppendEntry(nil, fsm.Turn{Term: 2, At: 1}, nil)}
			var have raft.Log
			if err := s.read(i, &have); err == nil {
				l = have
			}
			if l.Type == raft.LogCommand {
				l.Data = inVersion(nextEntry, l.Data)
			}
			logs = append(logs, &l)
		}
		if err := s.file.DeleteRange(from, last); err != nil {
			t.Fatal(err)
		}
		mustStore(t, s, logs)
		if err := s.file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	refuses := func(t *testing.T, tn *testNode, words ...string) {
		t.Helper()
		n, err := Open(tn.cfg, nil)
		if err == nil {
			n.Close()
		}
		wantNewer(t, err, words...)
	}
	t.Run("the newest entry", func(t *testing.T) {
		tn, last := stopped(t, false)
		rewrite(t, tn, last+1, last+1)
		refuses(t, tn, unknownEntry(last+1))
	})
	t.Run("the first entry of several", func(t *testing.T) {
		tn, last := stopped(t, true)
		rewrite(t, tn, last+1, last+3)
		refuses(t, tn, unknownEntry(last+1))
	})
	t.Run("every entry of the log", func(t *testing.T) {
		tn, last := stopped(t, false)
		rewrite(t, tn, 1, last)
		s, _ := openTestLogOf(t, tn.cfg.DataDir, tn.cfg.LogStore, func(err error) { t.Error(err) })
		first := uint64(1)
		for l := (raft.Log{}); l.Type != raft.LogCommand || l.Index == 0; first++ {
			if err := s.read(first, &l); err != nil {
				t.Fatal(err)
			}
		}
		s.file.Close()
		refuses(t, tn, unknownEntry(first-1))
	})
	t.Run("entries that the snapshot holds are not needed", func(t *testing.T) {
		tn, last := stopped(t, true)
		rewrite(t, tn, 1, last)
		tn.cluster.start(tn)
		if put(t, tn.cluster.leader(), "more"); !has(tn, "k") {
			t.Error("the state is not that of the snapshot")
		}
	})
	t.Run("the snapshot file", func(t *testing.T) {
		tn, _ := stopped(t, true)
		path := filepath.Join(tn.cfg.DataDir, snapshot.FileName)
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("meta"))
			return b.Put([]byte("meta"), inVersion(snapshot.Reads+1, b.Get([]byte("meta"))))
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		refuses(t, tn, path, fmt.Sprintf("unknown format version %d, this limitd reads versions up to %d", snapshot.Reads+1, snapshot.Reads))
	})
}

// A follower that is sent a snapshot it does not read stops, and keeps its own.
func TestNodeStopsAtASnapshotThatItDoesNotRead(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	leader := c.leader()
	put(t, leader, "k")
	old := c.others(leader)[0]
	eventually(t, "the batch on the follower", func() bool { return has(old, "k") })
	var b bytes.Buffer
	w := snapshot.NewStreamWriter(&b, snapshot.Header{Last: 1, T: 1})
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b.Bytes()[len("LIMITD")] = snapshot.Reads + 1
	before, _ := old.snapshots().Meta()
	r := old.raft.Load()
	rpc := raft.RPC{
		Command: &raft.InstallSnapshotRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(leader.raftID)}, SnapshotVersion: raft.SnapshotVersionMax,
			Term: r.CurrentTerm(), LastLogIndex: r.LastIndex() + 1000, LastLogTerm: r.CurrentTerm(), Size: int64(b.Len()),
			Configuration: raft.EncodeConfiguration(old.configuration()), ConfigurationIndex: 1,
		},
		Reader:   &b,
		RespChan: make(chan raft.RPCResponse, 1),
	}
	old.trans.deliver(old.trans.watchInstall(rpc))
	eventually(t, "the follower to stop", func() bool { return old.fatalReason() != nil })
	wantNewer(t, old.fatalReason(), "snapshot of the leader", fmt.Sprintf("unknown format version %d, this limitd reads versions up to %d", snapshot.Reads+1, snapshot.Reads))
	if after, _ := old.snapshots().Meta(); after.Index != before.Index {
		t.Errorf("the snapshot at %d was replaced by one at %d", before.Index, after.Index)
	}
	put(t, leader, "the others go on")
}

// member is a node of the tests below with what it told of itself.
type member struct {
	id    string
	reads versions // 0: nothing
}

// leaderOf is a node, as far as it is needed here, that leads those members and reads own.
func leaderOf(own versions, members ...member) *Node {
	n := &Node{reads: own, raftID: "n0-00000000", clock: &movedClock{}, logs: &logStore{file: emptyLog{}, disk: newDisk(machineClock{}, nil)}}
	n.stored.Servers = []raft.Server{{ID: n.serverID()}}
	for _, m := range members {
		n.stored.Servers = append(n.stored.Servers, raft.Server{ID: raft.ServerID(m.id), Suffrage: raft.Nonvoter})
		if m.reads != (versions{}) {
			n.notePolled(peerStatus{RaftID: m.id, ReadsEntry: m.reads.entry, ReadsStream: m.reads.stream})
		}
	}
	return n
}

// emptyLog is a log that holds nothing.
type emptyLog struct{ logFile }

func (emptyLog) FirstIndex() (uint64, error) { return 0, nil }
func (emptyLog) LastIndex() (uint64, error)  { return 0, nil }

func TestLeaderWritesTheNewestVersionThatAllMembersRead(t *testing.T) {
	const n1, n2 = "n1-11111111", "n2-22222222"
	for _, c := range []struct {
		name    string
		own     versions
		members []member
		want    versions
	}{
		{"alone", versions{3, 2}, nil, versions{3, 2}},
		{"all the same", versions{2, 2}, []member{{n1, versions{2, 2}}, {n2, versions{2, 2}}}, versions{2, 2}},
		{"one is older", versions{3, 3}, []member{{n1, versions{3, 3}}, {n2, versions{2, 1}}}, versions{2, 1}},
		{"each format for itself", versions{3, 3}, []member{{n1, versions{3, 1}}, {n2, versions{2, 3}}}, versions{2, 1}},
		{"the others are newer", versions{1, 1}, []member{{n1, versions{2, 2}}, {n2, versions{2, 2}}}, versions{1, 1}},
		{"one has told nothing", versions{2, 2}, []member{{n1, versions{2, 2}}, {n2, versions{}}}, versions{1, 1}},
		{"one knows nothing of versions", versions{2, 2}, []member{{n1, versions{2, 2}}, {n2, versions{0, 2}}}, versions{1, 2}},
	} {
		n := leaderOf(c.own, c.members...)
		if got := n.writes(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	n := leaderOf(versions{2, 2}, member{n1, versions{2, 2}})
	n.stored.Servers[1].ID = "n1-99999999" // replaced, and not heard of under its new raft id
	if got := n.writes(); got != firstVersions {
		t.Errorf("what the dead n1 read counts for the new one: %v", got)
	}
}

// A snapshot goes out in a version that its receiver reads, however new the sender is.
func TestSnapshotIsSentInAVersionThatItsReceiverReads(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 1)
	tn := c.leader()
	put(t, tn, "k")
	if _, err := tn.SaveSnapshot(); err != nil {
		t.Fatal(err)
	}
	for reads := uint8(0); reads <= snapshot.Reads+1; reads++ {
		tn.notePolled(peerStatus{RaftID: "n7-77777777", ReadsStream: reads})
		for id, want := range map[raft.ServerID]uint8{"n7-77777777": min(max(reads, 1), snapshot.Reads), "n8-88888888": 1} {
			list, err := tn.snapshots().List()
			if err != nil {
				t.Fatal(err)
			}
			_, rc, err := tn.snapshots().Open(list[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			req := raft.InstallSnapshotRequest{}
			err = tn.fitStream(id, &req, rc)
			b, readErr := io.ReadAll(rc)
			rc.Close()
			if err != nil || readErr != nil || b[len("LIMITD")] != want || int64(len(b)) != req.Size {
				t.Errorf("to %s, which reads %d: version %d, want %d; %d bytes, announced %d; %v, %v", id, reads, b[len("LIMITD")], want, len(b), req.Size, err, readErr)
			}
		}
	}
	if err := tn.fitStream("n7-77777777", &raft.InstallSnapshotRequest{}, strings.NewReader("no snapshot")); err == nil {
		t.Error("something else is sent")
	}
}

func TestNodeThatDoesNotReadWhatIsInUseCannotJoin(t *testing.T) {
	t.Parallel()
	old := peerStatus{RaftID: "n9-99999999", Version: "0.0", ReadsEntry: 1}
	n := leaderOf(versions{2, 2}, member{"n1-11111111", versions{2, 2}})
	if err := n.unreadable(old); err == nil || !strings.Contains(err.Error(), "n9-99999999 (limitd 0.0) reads entries up to version 1, and version 2 is in use") {
		t.Errorf("this leader writes version 2: %v", err)
	}
	n = leaderOf(versions{2, 2}, member{"n1-11111111", versions{1, 1}})
	if err := n.unreadable(old); err != nil {
		t.Errorf("version 1 is in use: %v", err)
	}
	s, _ := openTestLog(t, t.TempDir(), func(err error) { t.Error(err) })
	logs := entriesOfVersion1(1, 30)
	logs[9].Data = inVersion(2, logs[9].Data)
	mustStore(t, s, logs)
	n.logs = s
	if err := n.unreadable(old); err == nil {
		t.Error("the log holds version 2, from before this node led")
	}
	if err := s.DeleteRange(1, 9); err != nil {
		t.Fatal(err)
	}
	if err := n.unreadable(old); err == nil {
		t.Error("the log still holds version 2")
	}
	if err := s.DeleteRange(10, 10); err != nil {
		t.Fatal(err)
	}
	if err := n.unreadable(old); err != nil {
		t.Errorf("the log holds nothing of version 2 any more: %v", err)
	}
	l := *logs[20]
	l.Index, l.Data = 31, inVersion(2, l.Data)
	mustStore(t, s, []*raft.Log{&l})
	if err := errors.Join(s.DeleteRange(30, 31), s.StoreLogs(entriesOfVersion1(30, 40)), s.DeleteRange(11, 29)); err != nil {
		t.Fatal(err)
	}
	if err := n.unreadable(old); err != nil {
		t.Errorf("the entry of version 2 was taken back, and others came in its place: %v", err)
	}
	if err := s.DeleteRange(30, 40); err != nil {
		t.Fatal(err)
	}
	if v, err := s.newestVersion(); v != 1 || err != nil {
		t.Errorf("an empty log holds version %d, %v", v, err)
	}
}

func entriesOfVersion1(from, to uint64) []*raft.Log {
	logs := entries(from, to)
	for _, l := range logs {
		l.Data = putEntry(fsm.Turn{}, "k")
	}
	return logs
}
