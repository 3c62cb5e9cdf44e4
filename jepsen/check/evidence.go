package check

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
	"limitd/trace"
)

// evidence is what a run left behind, joined: operations by their tag with the
// decisions about them, entries by their index with what each node says of them.
type evidence struct {
	dir    string
	run    history.Run
	ops    []*op // in the order of their invocations
	byTag  map[uint64]*op
	health []history.Health

	nodes     []*nodeTrace
	rounds    []*round // by term and round
	byDigest  map[string]*round
	locals    []*local
	lineage   []*entry // that took effect and from which the newest state follows, by index
	forked    []*entry // that took effect somewhere and are not in it
	decisions []*decision
	byDecided map[uint64][]*decision   // by tag
	byID      map[model.ID][]*decision // of rounds, in order
	refused   []*decision              // calls with an ID that a round refused, in order

	clock clock
	past  *versions // nil: not made yet
}

// nodeTrace is one node's trace.
type nodeTrace struct {
	node string
	rows []row // in the order written
}

// row is a line of a trace.
type row struct {
	trace.Row
	line int
	life int // counts the processes of the node, from 1
}

func (r *row) String() string { return fmt.Sprintf("trace/%s.jsonl:%d", r.Node, r.line) }

// round is a round of a leader.
type round struct {
	row     *row
	outcome *row   // nil: the process ended before it was known
	before  *row   // outcome of the round before, of the same process; nil: none
	entry   *entry // that it made, if that took effect
}

// none says that the round proposed nothing.
func (r *round) none() bool { return r.row.Digest == "" }

// entry is an entry of the log that took effect, as the first node to apply it has it.
type entry struct {
	*row
	prev  string // chain before it
	round *round // that made it; nil: a tick, or a setting
}

// local is a row of calls that a node answered alone.
type local struct {
	*row
	node *nodeTrace
	pos  int // in the node's rows
}

// decision is a call that was decided, and answered if its client could be told: in a
// round that took effect, in one that changed nothing, or by a node alone.
type decision struct {
	call  *trace.Call
	row   *row
	round *round // nil: alone
	local *local // nil: in a round
	seq   int    // in the row
	order int    // among the decisions of rounds; of a refusal, of the one behind it
	op    *op    // nil: not an operation of the history
	parts []part // limits that a take or a takeall names, and what was found for each
	made  int64  // cluster time of the decision that the answer is of

	listed []model.Listed // of a list in a round: what the model says
	only   bool           // nothing else was decided about the operation
}

// part is one limit of a call: what was asked of it, and of a decision what was found.
type part struct {
	record  model.Record
	limit   model.Limit
	cost    int64
	allowed bool  // it would pass, if it were alone
	retry   int64 // ns
}

// load reads a run.
func load(dir string) (*evidence, error) {
	e := &evidence{dir: dir, byTag: map[uint64]*op{}, byDigest: map[string]*round{}, byDecided: map[uint64][]*decision{}, byID: map[model.ID][]*decision{}}
	if err := history.ReadJSON(dir, history.RunFile, &e.run); err != nil {
		return nil, err
	}
	events, err := history.ReadEvents(dir)
	if err != nil {
		return nil, err
	}
	if err := e.readOps(events); err != nil {
		return nil, err
	}
	if e.health, err = history.ReadHealth(dir); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "trace", "*.jsonl"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	for _, f := range files {
		if err := e.readTrace(f); err != nil {
			return nil, err
		}
	}
	e.join()
	return e, nil
}

func (e *evidence) readTrace(file string) error {
	n := &nodeTrace{node: strings.TrimSuffix(filepath.Base(file), ".jsonl")}
	life, line := 0, 0
	err := trace.Read(file, func(r trace.Row) error {
		line++
		if r.Kind == trace.Start {
			life++
		}
		if r.Node != n.node {
			return fmt.Errorf("%s, line %d: a row of node %s", file, line, r.Node)
		}
		n.rows = append(n.rows, row{Row: r, line: line, life: life})
		return nil
	})
	e.nodes = append(e.nodes, n)
	return err
}

// join finds rounds, entries and decisions, and brings them into order.
func (e *evidence) join() {
	for _, n := range e.nodes {
		e.joinRounds(n)
	}
	slices.SortStableFunc(e.rounds, func(a, b *round) int { return compare(a.row, b.row) })
	e.joinEntries()
	e.joinDecisions()
	e.clock = newClock(e)
}

// compare orders rounds by term and number.
func compare(a, b *row) int {
	switch {
	case a.Term != b.Term:
		return cmp.Compare(a.Term, b.Term)
	case a.Round != b.Round:
		return cmp.Compare(a.Round, b.Round)
	}
	return strings.Compare(a.Node, b.Node)
}

func (e *evidence) joinRounds(n *nodeTrace) {
	var open *round
	var outcome *row
	for i := range n.rows {
		r := &n.rows[i]
		switch r.Kind {
		case trace.Start:
			open, outcome = nil, nil
		case trace.Round:
			open = &round{row: r, before: outcome}
			e.rounds = append(e.rounds, open)
			if r.Digest != "" {
				e.byDigest[r.Digest] = open
			}
		case trace.Outcome:
			if open != nil && open.row.Round == r.Round {
				open.outcome, outcome = r, r
			}
		case trace.Local:
			e.locals = append(e.locals, &local{row: r, node: n, pos: i})
		}
	}
}

// joinDecisions lists the decisions of rounds in the order of their effects, a round
// without effect behind the entry that it was decided on; then those of nodes alone.
func (e *evidence) joinDecisions() {
	type at struct {
		index uint64
		after int // behind the entry itself
		r     *round
	}
	var rounds []at
	for _, r := range e.rounds {
		switch {
		case r.entry != nil:
			rounds = append(rounds, at{r.entry.Index, 0, r})
		case r.none():
			rounds = append(rounds, at{r.row.Base, 1, r})
		}
	}
	slices.SortStableFunc(rounds, func(a, b at) int {
		if a.index != b.index {
			return cmp.Compare(a.index, b.index)
		}
		return cmp.Compare(a.after, b.after)
	})
	for _, x := range rounds {
		e.decide(x.r.row, x.r, nil)
	}
	for _, l := range e.locals {
		e.decide(l.row, nil, l)
	}
}

func (e *evidence) decide(r *row, of *round, alone *local) {
	for i := range r.Calls {
		c := &r.Calls[i]
		d := &decision{call: c, row: r, round: of, local: alone, seq: i, order: len(e.decisions), op: e.byTag[c.Tag], made: r.At}
		d.readParts()
		switch {
		case c.Status == "ok":
			e.decisions = append(e.decisions, d)
			if c.Tag != 0 {
				e.byDecided[c.Tag] = append(e.byDecided[c.Tag], d)
			}
			if c.ID != "" && of != nil {
				id := model.ID{NS: c.NS, Token: c.ID}
				e.byID[id] = append(e.byID[id], d)
			}
		case c.ID != "" && c.Status == "err":
			e.refused = append(e.refused, d)
		}
	}
}

// readParts reads the limits. What cannot be read is the witness's to say.
func (d *decision) readParts() {
	c := d.call
	switch c.Op {
	case "take":
		if l, err := model.LimitOf(c); err == nil {
			d.parts = []part{{model.Record{NS: c.NS, Key: c.Key, Kind: l.Identity}, l, c.Cost, c.Allowed, c.Retry}}
		}
	case "takeall":
		for _, p := range c.Parts {
			if l, err := model.ParseLimit(p.Limit); err == nil {
				d.parts = append(d.parts, part{model.Record{NS: c.NS, Key: p.Key, Kind: l.Identity}, l, p.Cost, p.Allowed, p.Retry})
			}
		}
	}
}

// agreed are the decisions of rounds, in order.
func (e *evidence) agreed() []*decision {
	n := sort.Search(len(e.decisions), func(i int) bool { return e.decisions[i].round == nil })
	return e.decisions[:n]
}

// frees says that the decision gave capacity back.
func (d *decision) frees() bool {
	switch d.call.Op {
	case "take":
		return d.call.Cost < 0
	case "reset", "flush", "flushall":
		return true
	}
	return false
}

// charges says that the decision charged its parts, those of a cost above 0.
func (d *decision) charges() bool {
	c := d.call
	if c.Op != "take" && c.Op != "takeall" || !c.Allowed || c.Peek || c.Repeated {
		return false
	}
	return slices.ContainsFunc(d.parts, func(p part) bool { return p.cost > 0 })
}

// changes says that the decision changes state.
func (d *decision) changes() bool { return d.frees() || d.charges() }

// tookEffect says that the decision is in an entry that took effect.
func (d *decision) tookEffect() bool { return d.round != nil && d.round.entry != nil }

// key names a key of a namespace.
type key struct {
	ns   uint8
	name string // as traces have it
}

func (k key) String() string {
	if k.ns == 0 {
		return k.name
	}
	return fmt.Sprintf("%d/%s", k.ns, k.name)
}

// keys of the call. A flush has none: it concerns all of ns, or all.
func (d *decision) keys() []key {
	if d.call.Op == "flush" || d.call.Op == "flushall" {
		return nil
	}
	all := []key{{d.call.NS, d.call.Key}}
	add := func(name string) {
		if k := (key{d.call.NS, name}); !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	for _, k := range d.call.More {
		add(k)
	}
	for _, p := range d.call.Parts {
		add(p.Key)
	}
	return all
}
