package nemesis

import (
	"slices"

	"limitd/jepsen/lab"
)

// leader is the member that says it leads, any one if none does.
func (e *Env) leader() string {
	if l := e.Ask.Leader(e.Roster.List()); l != "" {
		return l
	}
	return e.some(1)[0]
}

// victim is the leader six times of ten, else any member.
func (e *Env) victim() string {
	id := e.some(1)[0]
	if e.Rand.IntN(10) < 6 {
		return e.leader()
	}
	return id
}

// follower is a member that does not lead.
func (e *Env) follower() string {
	others := e.others(e.leader())
	return others[e.Rand.IntN(len(others))]
}

// some are n members in random order, fewer if there are no more.
func (e *Env) some(n int) []string {
	all := e.Roster.List()
	e.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// everybody is all members in random order.
func (e *Env) everybody() []string { return e.some(len(e.Roster.List())) }

// others are the members but id.
func (e *Env) others(id string) []string {
	return slices.DeleteFunc(e.Roster.List(), func(x string) bool { return x == id })
}

func (e *Env) minority() int { return max(1, (len(e.Roster.List())-1)/2) }
func (e *Env) majority() int { return len(e.Roster.List())/2 + 1 }

// start starts a node; one that came by joining, or comes, knows whom to ask.
func (e *Env) start(id string) error { return e.Lab.Node(id).Start(e.serve(id)...) }

// startOlder starts it with the older binary.
func (e *Env) startOlder(id string) error { return e.Lab.Node(id).StartOlder(e.serve(id)...) }

// serve are a node's further arguments.
func (e *Env) serve(id string) []string {
	args := slices.Clone(e.Serve)
	if e.Roster.joined(id) {
		others := e.others(id)
		args = append(args, "--join", e.Lab.Node(others[e.Rand.IntN(len(others))]).RESP())
	}
	return args
}

// each calls do for nodes at once.
func (e *Env) each(ids []string, do func(lab.Node) error) error {
	failed := make(chan error, len(ids))
	for _, id := range ids {
		go func() { failed <- do(e.Lab.Node(id)) }()
	}
	var first error
	for range ids {
		if err := <-failed; err != nil && first == nil {
			first = err
		}
	}
	return first
}
