package nemesis

import (
	"maps"
	"slices"
	"sync"
)

// Roster is what the runner believes of the membership. The cluster knows better, and
// the operator asks it after each period of faults.
type Roster struct {
	mu      sync.Mutex
	members map[string]bool // of a member, or of one on its way in: whether it has its vote
	way     map[string]bool // on its way in, and no member that the leader lists
	came    map[string]bool // by joining, since it was last empty
	hurt    map[string]bool // its files were damaged, or taken away
}

// NewRoster begins with these, who are to found the cluster.
func NewRoster(ids ...string) *Roster {
	r := &Roster{members: map[string]bool{}, way: map[string]bool{}, came: map[string]bool{}, hurt: map[string]bool{}}
	for _, id := range ids {
		r.members[id] = true
	}
	return r
}

// List is the members, running or not, sorted.
func (r *Roster) List() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.members))
}

// Votes says that a node is a member with a vote. While that is changing it has none.
func (r *Roster) Votes(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members[id]
}

func (r *Roster) voters() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, votes := range r.members {
		if votes {
			n++
		}
	}
	return n
}

// has says that a node is a member.
func (r *Roster) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.members[id]
	return ok
}

// set notes a member and whether it has its vote.
func (r *Roster) set(id string, votes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[id] = votes
}

// list notes a member as the leader has it.
func (r *Roster) list(id string, votes bool) {
	r.set(id, votes)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.way, id)
}

// join notes that an empty node is on its way in.
func (r *Roster) join(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[id], r.way[id], r.came[id] = false, true, true
	delete(r.hurt, id)
}

// coming says that an empty node is on its way in.
func (r *Roster) coming(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.way[id]
}

func (r *Roster) joined(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.came[id]
}

// remove notes that a node is no member any more.
func (r *Roster) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, id)
	delete(r.way, id)
}

// damage notes that a node's files are not what they were; false if that would make
// those nodes more than a minority.
func (r *Roster) damage(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 1
	for other := range r.members {
		if r.hurt[other] && other != id {
			n++
		}
	}
	if n > (len(r.members)-1)/2 {
		return false
	}
	r.hurt[id] = true
	return true
}

// emptied notes that all files of a node that is no member were taken away: if it is one
// after all, it may say so.
func (r *Roster) emptied(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hurt[id] = true
}

func (r *Roster) damaged(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hurt[id]
}
