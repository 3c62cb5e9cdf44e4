package nemesis

import (
	"slices"
	"sync"
)

// Members are the nodes that the cluster should have now, running or not, and whose
// vote was taken, perhaps, and not yet given back.
type Members struct {
	mu      sync.Mutex
	ids     []string
	demoted map[string]bool
}

// NewMembers begins with these.
func NewMembers(ids ...string) *Members { return &Members{ids: ids, demoted: map[string]bool{}} }

// List is a copy, sorted.
func (m *Members) List() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.ids))
}

func (m *Members) add(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.ids, id) {
		m.ids = append(m.ids, id)
	}
}

func (m *Members) remove(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids = slices.DeleteFunc(m.ids, func(x string) bool { return x == id })
}

// SetVote notes whether a member has its vote.
func (m *Members) SetVote(id string, vote bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.demoted[id] = !vote
}

// Votes says that a node is a member with a vote.
func (m *Members) Votes(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.ids, id) && !m.demoted[id]
}
