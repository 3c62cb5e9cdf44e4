package nemesis

import (
	"slices"
	"sync"
)

// Members are the nodes that the cluster should have now: voters, running or not.
type Members struct {
	mu  sync.Mutex
	ids []string
}

// NewMembers begins with these.
func NewMembers(ids ...string) *Members { return &Members{ids: ids} }

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

// Has says that a node is a member.
func (m *Members) Has(id string) bool { return slices.Contains(m.List(), id) }
