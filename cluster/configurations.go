package cluster

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"limitd/fsm"
)

// configurations follows raft's configurations on their way: into the log, where
// they count from then on, and to the state machine, which gets only what is
// committed. Raft itself tells neither their indexes nor which of them is committed.
type configurations struct {
	mu        sync.Mutex
	newest    indexedConfiguration // in the log or the snapshot
	committed indexedConfiguration // the newest that is known to be committed
	listed    uint64               // newest index at which this node is a member, by its own log or by what others tell; 0: not known
	member    bool                 // one has listed this node
	voted     bool                 // this node has been a voter, by a committed one
	seen      map[string]bool      // raft ids and node ids that were in one since the start
	news      broadcast            // there is another one
}

// indexedConfiguration is a configuration and the index of its entry.
type indexedConfiguration struct {
	index   uint64
	servers []raft.Server
}

// lists says whether raftID is a member.
func (c indexedConfiguration) lists(raftID raft.ServerID) bool {
	return slices.ContainsFunc(c.servers, func(s raft.Server) bool { return s.ID == raftID })
}

// load takes over what the stores hold: what a snapshot holds is committed. A
// newest configuration that does not list this node may be one from before it was
// taken in, which it has not caught up with yet, or the one that removed it: that is
// not known until another node tells.
func (c *configurations) load(self raft.ServerID, snapshot, log indexedConfiguration) {
	c.committed, c.newest = snapshot, snapshot
	c.noteVote(self, snapshot.servers)
	c.see(snapshot.servers)
	c.see(log.servers)
	if log.index > snapshot.index {
		c.newest = log
	}
	switch {
	case c.newest.index == 0:
	case c.newest.lists(self):
		c.listed, c.member = c.newest.index, true
	default:
		c.listed = c.newest.index - 1
	}
}

// noteStored takes down a configuration that was written to the log.
func (c *configurations) noteStored(self raft.ServerID, index uint64, servers []raft.Server) {
	c.mu.Lock()
	c.newest = indexedConfiguration{index, servers}
	c.see(servers)
	if c.newest.lists(self) {
		c.listed, c.member = max(c.listed, index), true
	}
	c.mu.Unlock()
	c.news.announce()
}

// noteCommitted takes down a configuration that is committed.
func (c *configurations) noteCommitted(self raft.ServerID, index uint64, servers []raft.Server) {
	c.mu.Lock()
	if index > c.committed.index {
		c.committed = indexedConfiguration{index, servers}
		c.see(servers)
		if c.committed.lists(self) {
			c.listed, c.member = max(c.listed, index), true
		}
		c.noteVote(self, servers)
	}
	c.mu.Unlock()
	c.news.announce()
}

// noteTold takes down that this node is a member by what another node tells. Its own
// log may say so much later, or never, if it is removed before.
func (c *configurations) noteTold(s *peerStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.see(s.configuration())
	if s.stands() {
		c.listed, c.member = max(c.listed, s.ConfigIndex), true
	}
}

// noteVote takes down whether this node is a voter in a configuration that is committed.
// c.mu is held, or nobody else knows c yet.
func (c *configurations) noteVote(self raft.ServerID, servers []raft.Server) {
	c.voted = c.voted || slices.ContainsFunc(servers, func(s raft.Server) bool { return s.ID == self && s.Suffrage == raft.Voter })
}

// see takes down who is a member. c.mu is held, or nobody else knows c yet.
func (c *configurations) see(servers []raft.Server) {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	for _, s := range servers {
		c.seen[string(s.ID)], c.seen[name(s)] = true, true
	}
}

// hasSeen says whether a raft id or node id was a member since this process started.
func (c *configurations) hasSeen(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[id]
}

// isListed says whether the newest configuration has this node.
func (c *configurations) isListed(self raft.ServerID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest.lists(self)
}

// hasVoted says whether this node was a voter since it was started, or had a vote in its
// snapshot then.
func (c *configurations) hasVoted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.voted
}

// listedAt is the newest index at which this node was a member, 0: it is not known
// to have been one.
func (n *Node) listedAt() uint64 {
	if n.arrives() {
		return 0
	}
	c := &n.configs
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listed
}

// arrives says that this node is on its way in: it may get configurations first,
// and a snapshot with one, that are older than its membership.
func (n *Node) arrives() bool {
	joins := n.joining.wants() != joinsNot
	c := &n.configs
	c.mu.Lock()
	defer c.mu.Unlock()
	return joins && !c.member
}

// committedConfiguration is the newest configuration that is known to be
// committed, index 0: none is. An installed snapshot brings one too.
func (n *Node) committedConfiguration() indexedConfiguration {
	if m, ok := n.snapshots().Meta(); ok {
		n.configs.noteInstalled(n.serverID(), m.ConfigurationIndex, m.Configuration.Servers)
	}
	n.configs.mu.Lock()
	defer n.configs.mu.Unlock()
	return n.configs.committed
}

// noteInstalled is noteCommitted for what the snapshot file holds; most often that
// is known.
func (c *configurations) noteInstalled(self raft.ServerID, index uint64, servers []raft.Server) {
	c.mu.Lock()
	known := index <= c.committed.index
	c.mu.Unlock()
	if !known {
		c.noteCommitted(self, index, servers)
	}
}

// newestConfiguration is raft's newest configuration with its index, and whether
// it is committed for certain. While it is not known what raft has (a configuration
// was just taken back), it is the newest committed one.
func (n *Node) newestConfiguration() (c indexedConfiguration, committed bool) {
	known := n.committedConfiguration()
	servers := n.configuration().Servers
	n.configs.mu.Lock()
	newest := n.configs.newest
	n.configs.mu.Unlock()
	if newest.index > known.index && slices.Equal(newest.servers, servers) {
		return newest, false
	}
	return known, known.index > 0
}

// machine is the state machine as raft sees it: the node learns of configurations
// that are committed.
type machine struct {
	*fsm.FSM // concrete, so that all of it stays visible
	node     *Node
}

var (
	_ raft.FSM                = machine{}
	_ raft.ConfigurationStore = machine{}
)

// StoreConfiguration implements raft.ConfigurationStore.
func (m machine) StoreConfiguration(index uint64, c raft.Configuration) {
	m.FSM.StoreConfiguration(index, c)
	m.node.configs.noteCommitted(m.node.serverID(), index, c.Servers)
}
