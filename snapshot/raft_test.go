package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// toy is the smallest state machine that keeps to the rules of the store: an entry "key=text" sets a record.
type toy struct {
	store *Store

	mu       sync.Mutex
	state    map[string]string
	dirty    map[string]bool
	last     uint64
	restored int
}

func (f *toy) Apply(l *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, text, _ := strings.Cut(string(l.Data), "=")
	f.state[key], f.dirty[key], f.last = text, true, l.Index
	return nil
}

func (f *toy) StoreConfiguration(uint64, raft.Configuration) {}

func (f *toy) applied() uint64 { f.mu.Lock(); defer f.mu.Unlock(); return f.last }

func (f *toy) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &toySnapshot{f: f, dirty: f.dirty, h: Header{Last: f.last, T: int64(f.last)}}
	f.dirty = map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(s.dirty)) {
		s.records = append(s.records, rec(key, f.state[key], 1<<60))
	}
	slices.SortFunc(s.records, func(a, b Record) int { return bytes.Compare(a.Name, b.Name) })
	return s, nil
}

type toySnapshot struct {
	f       *toy
	h       Header
	dirty   map[string]bool
	records []Record
	sink    *Sink
	done    bool
}

func (s *toySnapshot) Persist(sink raft.SnapshotSink) error {
	s.sink = sink.(*Sink)
	err := s.sink.Commit(s.h, s.records)
	s.done = err == nil
	return err
}

func (s *toySnapshot) Release() {
	if !s.done { // what is not in the file is still to be written
		s.f.mu.Lock()
		maps.Copy(s.f.dirty, s.dirty)
		s.f.mu.Unlock()
	}
	if s.sink != nil {
		s.sink.Release()
	}
}

func (f *toy) Restore(rc io.ReadCloser) error {
	r, ok := FromReader(rc)
	if !ok {
		return errors.New("not our reader")
	}
	state := map[string]string{}
	err := r.Each(func(r Record) error {
		_, key, _, err := SplitName(r.Name)
		state[string(key)] = string(r.State)
		return err
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.dirty, f.last = state, map[string]bool{}, r.Meta().Last
	f.restored++
	return nil
}

// member is a node of the test cluster: what survives a restart, and what runs.
type member struct {
	id    raft.ServerID
	dir   string
	logs  *raft.InmemStore
	fsm   *toy
	store *Store
	trans *raft.InmemTransport
	raft  *raft.Raft
}

func (m *member) start(t *testing.T) {
	t.Helper()
	m.store = openTest(t, m.dir, Options{})
	m.fsm = &toy{store: m.store, state: map[string]string{}, dirty: map[string]bool{}}
	m.store.SetOptions(Options{Applied: m.fsm.applied})
	_, m.trans = raft.NewInmemTransport(raft.ServerAddress(m.id))
	c := raft.DefaultConfig()
	c.LocalID = m.id
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	c.CommitTimeout = 5 * time.Millisecond
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = time.Hour, 1<<40, 2
	c.NoLegacyTelemetry = true
	c.Logger = hclog.New(&hclog.LoggerOptions{Name: string(m.id), Output: io.Discard})
	if os.Getenv("RAFT_LOG") != "" {
		c.Logger = hclog.New(&hclog.LoggerOptions{Name: string(m.id), Output: os.Stderr})
	}
	var err error
	if m.raft, err = raft.NewRaft(c, m.fsm, m.logs, m.logs, m.store, m.trans); err != nil {
		t.Fatal(err)
	}
}

func (m *member) stop(t *testing.T) {
	t.Helper()
	if err := m.raft.Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	m.trans.Close()
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
}

type group []*member

func newGroup(t *testing.T) group {
	t.Helper()
	var g group
	var conf raft.Configuration
	for i := range 3 {
		id := raft.ServerID(fmt.Sprintf("n%d", i+1))
		g = append(g, &member{id: id, dir: t.TempDir(), logs: raft.NewInmemStore()})
		conf.Servers = append(conf.Servers, raft.Server{ID: id, Address: raft.ServerAddress(id)})
	}
	for _, m := range g {
		m.start(t)
	}
	g.connect()
	if err := g[0].raft.BootstrapCluster(conf).Error(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range g {
			if m.raft != nil {
				m.stop(t)
			}
		}
	})
	return g
}

func (g group) connect() {
	for _, a := range g {
		for _, b := range g {
			if a != b && a.raft != nil && b.raft != nil {
				a.trans.Connect(b.trans.LocalAddr(), b.trans)
			}
		}
	}
}

func (g group) cut(m *member) {
	m.trans.DisconnectAll()
	for _, other := range g {
		if other.raft != nil {
			other.trans.Disconnect(m.trans.LocalAddr())
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: ", what)
		}
	}
}

func (g group) leader(t *testing.T) (l *member) {
	t.Helper()
	eventually(t, "a leader", func() bool {
		for _, m := range g {
			if m.raft != nil && m.raft.State() == raft.Leader && m.raft.VerifyLeader().Error() == nil {
				l = m
				return true
			}
		}
		return false
	})
	return l
}

// put sets n records through whoever leads.
func (g group) put(t *testing.T, prefix string, n int) {
	t.Helper()
	for i := range n {
		eventually(t, "an entry is applied", func() bool {
			return g.leader(t).raft.Apply(fmt.Appendf(nil, "%s%d=%d", prefix, i, i), time.Second).Error() == nil
		})
	}
}

// agree waits until all members have the leader's state, and compares streams of snapshots at one index.
func (g group) agree(t *testing.T) {
	t.Helper()
	l := g.leader(t)
	if err := l.raft.Barrier(5 * time.Second).Error(); err != nil {
		t.Fatal(err)
	}
	last := l.fsm.applied()
	for _, m := range g {
		eventually(t, string(m.id)+" catches up", func() bool { return m.fsm.applied() == last })
	}
	var want []byte
	for _, m := range g {
		if err := m.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			t.Fatal(m.id, err)
		}
		_, b := stream(t, m.store)
		if want == nil {
			want = b
		}
		if !bytes.Equal(want, b) {
			t.Fatal(m.id, "has another state")
		}
		m.fsm.mu.Lock()
		got := inMemory(m.fsm.state)
		m.fsm.mu.Unlock()
		if !maps.Equal(got, contents(t, m.store)) {
			t.Fatal(m.id, "has another state in memory than in its file")
		}
	}
}

func inMemory(state map[string]string) map[string]string {
	var records []Record
	for k, v := range state {
		records = append(records, rec(k, v, 1<<60))
	}
	return want(records...)
}

func TestRaftRestartsFromTheFile(t *testing.T) {
	g := newGroup(t)
	g.put(t, "a", 20)
	g.agree(t)
	g.put(t, "b", 5)
	for _, m := range g {
		m.stop(t)
		m.raft = nil
		m.start(t)
		g.connect()
		if m.fsm.restored != 1 {
			t.Fatal(m.id, "restored", m.fsm.restored, "times")
		}
		if err := m.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			t.Log("a snapshot right after the restart:", err) // refused until a configuration entry is applied again
		}
		g.put(t, "c", 5)
	}
	g.agree(t)
}

func TestRaftInstallsOnAFollowerThatLags(t *testing.T) {
	g := newGroup(t)
	g.put(t, "a", 10)
	g.agree(t)
	l := g.leader(t)
	lagging := g[0]
	if lagging == l {
		lagging = g[1]
	}
	g.cut(lagging)
	g.put(t, "b", 20)
	l = g.leader(t)
	if err := l.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if first, _ := l.logs.FirstIndex(); first <= lagging.fsm.applied() {
		t.Fatal("the log still reaches back; nothing will be installed")
	}
	g.connect()
	eventually(t, "the install", func() bool {
		lagging.fsm.mu.Lock()
		defer lagging.fsm.mu.Unlock()
		return lagging.fsm.restored > 0
	})
	g.put(t, "c", 5)
	g.agree(t)
	lagging.stop(t)
	lagging.raft = nil
	lagging.start(t)
	g.connect()
	g.agree(t)
}

// Raft hands over every install of the right term, however late it comes.
func TestRaftGivesALateInstallAndTheStoreRefusesIt(t *testing.T) {
	g := newGroup(t)
	g.put(t, "a", 10)
	g.agree(t)
	l := g.leader(t)
	v := g[0]
	if v == l {
		v = g[1]
	}
	meta, body := stream(t, l.store)
	deliver := func() (raft.InstallSnapshotResponse, error) {
		req := raft.InstallSnapshotRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte(l.id), Addr: []byte(l.id)}, SnapshotVersion: 1,
			Term: l.raft.CurrentTerm(), LastLogIndex: meta.Index, LastLogTerm: meta.Term, Size: meta.Size,
			Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex,
		}
		var resp raft.InstallSnapshotResponse
		err := l.trans.InstallSnapshot(v.id, raft.ServerAddress(v.id), &req, &resp, bytes.NewReader(body))
		return resp, err
	}
	eventually(t, "the follower has a snapshot at the same index", func() bool { // its barrier may come later
		_ = v.raft.Snapshot().Error()
		x, _ := v.store.Meta()
		return x.Index == meta.Index
	})
	was := inode(t, v.store)
	if resp, err := deliver(); err != nil || !resp.Success {
		t.Fatal("equal to the file:", resp, err)
	}
	if inode(t, v.store) != was {
		t.Fatal("equal to the file, and renamed")
	}
	g.put(t, "b", 5)
	last := l.fsm.applied()
	eventually(t, "the follower follows", func() bool { return v.fsm.applied() == last })
	if resp, err := deliver(); err == nil || resp.Success || !strings.Contains(err.Error(), ErrStale.Error()) {
		t.Fatal("older than what is applied:", resp, err)
	}
	if err := v.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if resp, err := deliver(); err == nil || resp.Success {
		t.Fatal("older than the file:", resp, err)
	}
	if v.fsm.applied() < last {
		t.Fatal("went back")
	}
	g.put(t, "c", 5)
	g.agree(t)
}

func TestRaftSnapshotFutureGivesTheStream(t *testing.T) {
	g := newGroup(t)
	g.put(t, "a", 10)
	l := g.leader(t)
	f := l.raft.Snapshot()
	if err := f.Error(); err != nil {
		t.Fatal(err)
	}
	m, rc, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	info, err := Inspect(rc)
	if err != nil || info.Bytes != m.Size || info.Records != 10 || info.Header.Last > m.Index {
		t.Fatalf("%+v %+v %v", info, m, err)
	}
	f = l.raft.Snapshot()
	if err := f.Error(); err != nil {
		t.Fatal("again, at the same index:", err)
	}
	g.put(t, "b", 3)
	if err := l.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Open(); !errors.Is(err, ErrNoSnapshot) {
		t.Fatal("a future whose snapshot has been replaced:", err)
	}
}

// A Persist that fails loses nothing: Release gives the records back and the next snapshot has them.
func TestRaftSnapshotThatFailsIsMadeUpFor(t *testing.T) {
	g := newGroup(t)
	g.put(t, "a", 10)
	g.agree(t)
	g.put(t, "b", 5)
	l := g.leader(t)
	l.store.mu.Lock()
	l.store.meta.Index += 1000 // as if an install had come in between
	l.store.mu.Unlock()
	if err := l.raft.Snapshot().Error(); err == nil || !strings.Contains(err.Error(), ErrSuperseded.Error()) {
		t.Fatal(err)
	}
	l.store.mu.Lock()
	l.store.meta.Index -= 1000
	l.store.mu.Unlock()
	g.put(t, "c", 1)
	g.agree(t)
}

// The dead majority's state, recovered under another configuration at the same index.
func TestRaftRecoverClusterRewritesTheMeta(t *testing.T) {
	g := newGroup(t)
	g.put(t, "a", 10)
	g.agree(t)
	m := g[0]
	m.stop(t)
	m.raft = nil
	alone := raft.Configuration{Servers: []raft.Server{{ID: m.id, Address: raft.ServerAddress(m.id)}}}
	for range 2 {
		m.store = openTest(t, m.dir, Options{})
		before := contents(t, m.store)
		m.fsm = &toy{store: m.store, state: map[string]string{}, dirty: map[string]bool{}}
		c := raft.DefaultConfig()
		c.LocalID = m.id
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: io.Discard})
		_, trans := raft.NewInmemTransport("")
		if err := raft.RecoverCluster(c, m.fsm, m.logs, m.logs, m.store, trans, alone); err != nil {
			t.Fatal(err)
		}
		if x, _ := m.store.Meta(); len(x.Configuration.Servers) != 1 {
			t.Fatalf("%+v", x)
		}
		if got := contents(t, m.store); !maps.Equal(got, before) {
			t.Fatalf("got %v, had %v", got, before)
		}
		m.store.Close()
	}
}
