package check

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"limitd/jepsen/history"
	"limitd/trace"
)

// world makes a run that never was: three nodes, clients and faults in virtual time,
// with a limiter of its own, written down as a real run is. With a bug it is a bad one.
type world struct {
	r      *rand.Rand
	bug    string
	now    int64
	queue  timeline
	seq    int
	until  int64
	limits map[string][3]int64 // key: max_burst, count, period

	run    history.Run
	events []history.Event
	health []history.Health
	nodes  []*simNode
	tag    uint64

	leader  *simNode // nil: an election
	term    uint64
	epoch   int // of the leader
	offset  int64
	round   map[*simNode]uint64
	busy    bool
	waiting []*asked
	flight  func(lost bool) // what the death of the leader does to the proposal in flight

	prints map[string]string // to the nodes' logs

	log   []logged
	index uint64
	last  uint64
	t     int64
	chain string
}

// bootOffset is the boot clock less the run's time, epochOffset cluster time less the boot clock.
const (
	bootOffset  = int64(5e15)
	epochOffset = int64(1_800_000_000e9) - bootOffset
	ms          = int64(time.Millisecond)
)

type simNode struct {
	id      string
	up      bool
	rows    []trace.Row
	table   map[string]int64
	applied uint64 // index
	next    int    // of the log
	receipt [2]int64
	heard   int64 // when the newest news of the commit index came
	fence   uint64
}

type logged struct {
	row   trace.Row
	where uint64 // index
}

// asked is an operation under way.
type asked struct {
	worker, process int
	event           history.Event
	node            *simNode
	key             string
	op              string
	cost            int64
	over            bool
	call            trace.Call
}

type timed struct {
	t   int64
	seq int
	do  func()
}

type timeline []timed

func (q timeline) Len() int { return len(q) }
func (q timeline) Less(i, j int) bool {
	return q[i].t < q[j].t || q[i].t == q[j].t && q[i].seq < q[j].seq
}
func (q timeline) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *timeline) Push(x any)   { *q = append(*q, x.(timed)) }
func (q *timeline) Pop() any {
	x := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return x
}

func (w *world) after(d int64, do func()) {
	w.seq++
	heap.Push(&w.queue, timed{w.now + d, w.seq, do})
}

func (w *world) between(a, b int64) int64 { return a + w.r.Int64N(b-a) }

// simulate makes a run of about perSecond*seconds operations.
func simulate(seed uint64, bug string, seconds int64, perSecond int) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 77)), bug: bug, until: seconds * 1000 * ms, offset: epochOffset, round: map[*simNode]uint64{}, chain: trace.Hash(0)}
	w.limits = map[string][3]int64{"hot:0": {19, 60, 1}, "hot:1": {9, 100, 3}, "budget:0": {1999, 1, 86400}}
	for i := range 8 {
		w.limits["warm:"+strconv.Itoa(i)] = [3]int64{5, 12, 3}
	}
	for i := range 3 {
		n := &simNode{id: "n" + strconv.Itoa(i+1), up: true, table: map[string]int64{}}
		w.nodes = append(w.nodes, n)
		w.run.Nodes = append(w.run.Nodes, n.id)
		w.write(n, trace.Row{Kind: trace.Start, PID: 1 + i})
	}
	w.run.Seed, w.run.HeartbeatNS, w.run.Members = seed, 300*ms, w.run.Nodes
	w.note()
	w.elect(w.nodes[0])
	const workers = 8
	gap := 1000 * ms * workers / int64(perSecond)
	for i := range workers {
		w.after(w.between(600*ms, 700*ms), func() { w.ask(i, i, gap) })
	}
	if bug != "stuck" {
		w.after(w.between(1500*ms, 2500*ms), w.trouble)
	}
	w.after(800*ms, w.tick)
	for _, n := range w.nodes {
		w.contact(n)
	}
	for len(w.queue) > 0 {
		x := heap.Pop(&w.queue).(timed)
		w.now = x.t
		x.do()
	}
	w.now = max(w.now, w.until+5000*ms)
	for _, n := range w.nodes {
		w.catchUp(n)
	}
	w.run.Duration = w.now
	w.sort()
	return w
}

// sort brings the events into the order of their times.
func (w *world) sort() {
	slices.SortStableFunc(w.events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	for i := range w.events {
		w.events[i].Index = i
	}
}

func (w *world) write(n *simNode, r trace.Row) {
	r.Node, r.Boot = n.id, w.now+bootOffset
	n.rows = append(n.rows, r)
}

// note writes what works.
func (w *world) note() {
	h := history.Health{Time: w.now, Nodes: map[string]history.NodeHealth{}}
	for _, n := range w.nodes {
		var peers []string
		for _, p := range w.nodes {
			if p != n {
				peers = append(peers, p.id)
			}
		}
		h.Nodes[n.id] = history.NodeHealth{Voter: true, Up: n.up, Disk: true, Client: true, Peers: peers}
	}
	w.health = append(w.health, h)
}

func (w *world) clusterTime() int64 {
	t := w.now + bootOffset + w.offset
	switch {
	case w.bug == "time-jumps" && w.now > 5000*ms:
		t += 50 * ms
	case w.bug == "time-runs":
		t += w.now
	}
	return max(w.t, t)
}

// elect makes a node the leader.
func (w *world) elect(n *simNode) {
	w.after(w.between(350*ms, 550*ms), func() {
		if !n.up {
			w.elect(w.nodes[w.r.IntN(3)])
			return
		}
		w.leader, w.term, w.busy, w.flight = n, w.term+1, false, nil
		w.catchUp(n)
		w.epoch++
		w.index++ // its no-op
		if w.term > 1 {
			w.offset -= w.between(0, 3*ms)
		} else {
			w.commit(trace.Row{Term: 1, At: w.clusterTime(), Digest: w.digest(), Effects: []trace.Effect{{Op: "setcluster", State: "0102"}}}, false)
		}
		w.decideSoon()
	})
}

func (w *world) digest() string { return trace.Hash(w.r.Uint64()) }

// commit puts an entry into the log; the leader applies it now, the others soon.
func (w *world) commit(r trace.Row, void bool) uint64 {
	w.index++
	r.Kind, r.Index, r.Outcome = trace.Applied, w.index, "applied"
	if void {
		r.Outcome = "void"
	} else {
		r.Base = w.last
		w.last, w.t = w.index, max(w.t, r.At)
		h := fnv.New64a()
		fmt.Fprint(h, w.chain, w.index, r.Digest)
		w.chain = trace.Hash(h.Sum64())
	}
	r.Last, r.T, r.Chain = w.last, w.t, w.chain
	w.log = append(w.log, logged{r, w.index})
	for _, n := range w.nodes {
		n.receipt = [2]int64{r.At, w.now}
		if n == w.leader {
			w.catchUp(n)
		} else {
			slow := 25 * ms
			if w.bug == "no-fence" {
				slow = 290 * ms
			}
			w.after(w.between(ms/10, slow), func() { w.catchUp(n) })
		}
	}
	return w.index
}

// catchUp lets a node apply what is in the log.
func (w *world) catchUp(n *simNode) {
	if !n.up || w.bug == "out-of-touch" && n == w.nodes[2] && n != w.leader && w.now > 3000*ms && w.now < 9000*ms {
		return
	}
	for ; n.next < len(w.log); n.next++ {
		x := w.log[n.next]
		w.write(n, x.row)
		n.applied = x.where
		if x.row.Outcome == "applied" {
			for _, f := range x.row.Effects {
				switch f.Op {
				case "replace":
					b, _ := hex.DecodeString(f.State)
					n.table[f.Key] = int64(binary.LittleEndian.Uint64(b))
				case "delete":
					delete(n.table, f.Key)
				}
			}
		}
	}
	n.heard = w.now
}

// contact is the leader's news, now and then.
func (w *world) contact(n *simNode) {
	if w.now > w.until+2000*ms {
		return
	}
	if w.leader != nil && w.bug != "no-fence" {
		w.catchUp(n)
	}
	w.after(w.between(50*ms, 100*ms), func() { w.contact(n) })
}

func (w *world) tick() {
	if w.now > w.until {
		return
	}
	if w.leader != nil && !w.busy {
		w.commit(trace.Row{Term: w.term, At: w.clusterTime(), Digest: w.digest()}, false)
	}
	w.after(w.between(700*ms, 900*ms), w.tick)
}

// trouble kills a node now and then, mostly the leader, and starts it again.
func (w *world) trouble() {
	if w.now > w.until-2500*ms {
		return
	}
	n := w.nodes[w.r.IntN(3)]
	if w.leader != nil && w.r.IntN(3) > 0 {
		n = w.leader
	}
	if n.up {
		n.up = false
		w.note()
		if n == w.leader {
			w.leader = nil
			if w.flight != nil {
				w.flight(w.r.IntN(2) == 0)
			}
			for _, o := range w.waiting {
				w.end(o, history.Info, "connection reset")
			}
			w.waiting = nil
			w.elect(w.nodes[w.r.IntN(3)])
		}
		w.after(w.between(200*ms, 600*ms), func() { w.restart(n) })
	}
	w.after(w.between(1800*ms, 3000*ms), w.trouble)
}

// restart brings a node back: from a snapshot, and the log behind it.
func (w *world) restart(n *simNode) {
	n.up, n.table, n.applied, n.fence = true, map[string]int64{}, 0, 0
	w.note()
	w.write(n, trace.Row{Kind: trace.Start, PID: 9})
	from := 0
	if n.next > 0 {
		from = w.r.IntN(n.next)
	}
	n.next = 0
	if from > 0 {
		for n.next < from {
			x := w.log[n.next]
			n.next++
			n.applied = x.where
			for _, f := range x.row.Effects {
				if x.row.Outcome != "applied" {
					break
				}
				if f.Op == "replace" {
					b, _ := hex.DecodeString(f.State)
					n.table[f.Key] = int64(binary.LittleEndian.Uint64(b))
				} else if f.Op == "delete" {
					delete(n.table, f.Key)
				}
			}
		}
		x := w.log[from-1].row
		w.write(n, trace.Row{Kind: trace.Restored, Index: x.Index, Last: x.Last, T: x.T, Chain: x.Chain, ClusterID: "0102"})
	}
	n.heard = 0
	w.after(w.between(5*ms, 30*ms), func() { w.catchUp(n) })
}

// ask is a worker's next operation.
func (w *world) ask(worker, process int, gap int64) {
	if w.now > w.until {
		return
	}
	keys := []string{"hot:0", "hot:1", "budget:0"}
	k := keys[w.r.IntN(3)]
	if w.r.IntN(2) == 0 {
		k = "warm:" + strconv.Itoa(w.r.IntN(8))
	}
	w.tag++
	o := &asked{worker: worker, process: process, node: w.nodes[w.r.IntN(3)], key: k, op: "take"}
	l := w.limits[k]
	cmd := []string{"CL.THROTTLE", k, fmt.Sprint(l[0]), fmt.Sprint(l[1]), fmt.Sprint(l[2])}
	f := "take"
	switch n := w.r.IntN(100); {
	case n < 74:
		o.cost = 1 + w.r.Int64N(3)
		if w.r.IntN(8) == 0 {
			o.cost = 1 + w.r.Int64N(l[0]+2)
		}
	case n < 86:
		f = "peek"
	case n < 93:
		f, o.cost = "refund", -1-w.r.Int64N(2)
	case n < 95 && k != "budget:0":
		f, o.op, cmd = "reset", "reset", []string{"DEL", k}
	case n < 97:
		f, o.op, cmd = "exists", "exists", []string{"EXISTS", k}
	default:
		f, o.op, cmd = "ttl", "ttl", []string{"PTTL", k}
	}
	if o.op == "take" {
		cmd = append(cmd, fmt.Sprint(o.cost))
	}
	o.event = history.Event{Type: history.Invoke, Process: process, Time: w.now, F: f, Tag: w.tag, Node: o.node.id, Key: k, Cmd: cmd}
	o.call = trace.Call{Tag: w.tag, Op: o.op, Key: k}
	if o.op == "take" {
		o.call.Algorithm, o.call.Interval, o.call.Burst, o.call.Cost = 1, l[2]*1e9/l[1], l[0]+1, o.cost
	}
	w.events = append(w.events, o.event)
	w.after(w.between(ms/20, ms/4), func() {
		if !o.node.up {
			w.end(o, history.Fail, "connection refused")
			return
		}
		w.arrive(o)
	})
	w.after(3000*ms, func() { w.end(o, history.Info, "timeout") })
	w.pace(o, gap)
}

// pace lets the worker go on when the operation has ended.
func (w *world) pace(o *asked, gap int64) {
	due := w.now + w.between(gap/2, gap*3/2)
	var wait func()
	wait = func() {
		if !o.over {
			w.after(ms/2, wait)
			return
		}
		process := o.process
		if o.event.Type == history.Info {
			process += 8
		}
		w.after(max(0, due-w.now), func() { w.ask(o.worker, process, gap) })
	}
	w.after(ms/2, wait)
}

// end completes an operation.
func (w *world) end(o *asked, t history.Type, says string) {
	if o.over {
		return
	}
	o.over = true
	o.event.Type = t
	e := o.event
	e.Time, e.Error, e.Cmd = w.now, says, nil
	if t == history.OK {
		c := o.call
		e.Error = ""
		switch o.op {
		case "take":
			limited, retry := int64(0), int64(-1)
			if !c.Allowed {
				limited = 1
				if c.Retry >= 0 {
					retry = (c.Retry + 1e9 - 1) / 1e9
				}
			}
			e.Reply = []any{limited, c.Burst, c.Remaining, retry, (c.Reset + 1e9 - 1) / 1e9}
		case "ttl":
			n := c.N
			if n > 0 {
				n = (n + 1e6 - 1) / 1e6
			}
			e.Reply = n
		default:
			e.Reply = c.N
		}
	}
	w.events = append(w.events, e)
}

// arrive: the node answers alone, or sends it to the leader.
func (w *world) arrive(o *asked) {
	n := o.node
	if n == w.leader && !w.busy || n != w.leader && n.heard > 0 && w.now-n.heard < 300*ms || w.bug == "out-of-touch" && n.heard > 0 {
		now := w.clusterTime()
		if n != w.leader {
			gone := w.now - n.receipt[1]
			now = n.receipt[0] + gone - gone/1000
			if w.bug == "ahead" {
				now += 40 * ms
			}
		}
		c := o.call
		w.answer(maps.Clone(n.table), &c, now)
		alone := c.Op == "take" && !c.Allowed && (c.Retry == -1 || c.Retry >= 20*ms)
		if n == w.leader {
			alone = c.Op == "take" && c.Cost >= 0 && (!c.Allowed || c.Cost == 0) || c.Op == "exists" || c.Op == "ttl"
		} else if c.Op != "take" || c.Cost <= 0 || n.applied < n.fence && w.bug != "no-fence" && w.bug != "out-of-touch" {
			alone = false
		}
		if alone {
			o.call = c
			w.write(n, trace.Row{Kind: trace.Local, At: now, Index: n.applied, Upto: n.applied, Leading: n == w.leader, Calls: []trace.Call{c}})
			w.after(w.between(ms/20, ms/4), func() { w.end(o, history.OK, "") })
			return
		}
	}
	w.after(w.between(ms/20, ms/4), func() { w.forward(o, w.now) })
}

func (w *world) forward(o *asked, since int64) {
	switch {
	case o.over:
	case !o.node.up:
		w.end(o, history.Info, "connection reset")
	case w.bug == "stuck" && w.now > 6000*ms && w.now < 9500*ms:
		w.end(o, history.Fail, "CLUSTERDOWN no leader")
	case w.bug == "mute" && o.event.Tag == 100:
	case w.leader == nil && w.now-since > 200*ms:
		w.end(o, history.Fail, "CLUSTERDOWN no leader")
	case w.leader == nil:
		w.after(20*ms, func() { w.forward(o, since) })
	default:
		w.waiting = append(w.waiting, o)
		w.decideSoon()
	}
}

func (w *world) decideSoon() {
	if !w.busy && len(w.waiting) > 0 && w.leader != nil {
		w.busy = true
		epoch := w.epoch
		w.after(ms/50, func() {
			if epoch == w.epoch && w.leader != nil {
				w.decide()
			}
		})
	}
}

// decide is a round of the leader.
func (w *world) decide() {
	n, tasks := w.leader, w.waiting
	w.waiting = nil
	w.round[n]++
	r := trace.Row{Kind: trace.Round, Term: w.term, Round: w.round[n], Base: w.last, At: w.clusterTime()}
	view := maps.Clone(n.table)
	must := false
	touched := map[string]bool{}
	for _, o := range tasks {
		before, had := view[o.key]
		w.answer(view, &o.call, r.At)
		if after, has := view[o.key]; has != had || after != before {
			touched[o.key] = true
		}
		must = must || o.call.Op == "reset" || o.call.Cost < 0
		r.Calls = append(r.Calls, o.call)
	}
	var effects []trace.Effect
	for k := range w.limits {
		if !touched[k] {
			continue
		}
		if tat, ok := view[k]; ok && tat > r.At {
			effects = append(effects, trace.Effect{Op: "replace", Key: k, Identity: "01", State: hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, uint64(tat))), Expiry: tat})
		} else {
			effects = append(effects, trace.Effect{Op: "delete", Key: k, Identity: "01"})
		}
	}
	slices.SortFunc(effects, func(a, b trace.Effect) int { return compareKeys(key{0, a.Key}, key{0, b.Key}) })
	finish := func() {
		for _, o := range tasks {
			if o.cost < 0 || o.op == "reset" {
				o.node.fence = w.index
			}
			w.after(w.between(ms/20, ms/4), func() {
				if !o.node.up {
					w.end(o, history.Info, "connection reset")
				}
				w.end(o, history.OK, "")
			})
		}
	}
	outcome := trace.Row{Kind: trace.Outcome, Term: r.Term, Round: r.Round, Outcome: "none"}
	epoch := w.epoch
	if len(effects) == 0 && !must {
		w.write(n, r)
		w.write(n, outcome)
		finish()
		w.busy = false
		w.decideSoon()
		return
	}
	r.Digest = w.digest()
	w.write(n, r)
	entry := trace.Row{Term: r.Term, At: r.At, Digest: r.Digest, Effects: effects}
	if w.bug == "ack-first" {
		finish()
	}
	w.flight = func(lost bool) {
		switch {
		case lost:
		case w.r.IntN(3) == 0:
			entry.Term, entry.Base = w.term+1, w.last // appended in another term than it was decided in
			w.commit(entry, true)
		default:
			w.commit(entry, false)
		}
		for _, o := range tasks {
			if w.bug == "doubt-refused" {
				w.end(o, history.Fail, "TRYAGAIN")
			}
			w.end(o, history.Info, "INDOUBT proposed")
		}
	}
	w.after(w.between(ms/2, 2*ms), func() {
		if epoch != w.epoch || w.leader != n {
			return
		}
		w.flight = nil
		index := w.commit(entry, false)
		outcome.Outcome, outcome.Index = "applied", index
		w.write(n, outcome)
		finish()
		w.busy = false
		w.decideSoon()
	})
}

// answer is the limiter of this world.
func (w *world) answer(table map[string]int64, c *trace.Call, now int64) {
	c.Status = "ok"
	tat, ok := table[c.Key]
	debt := max(0, tat-now)
	c.N = 0
	if ok && debt > 0 {
		c.N = 1
	}
	switch c.Op {
	case "reset":
		delete(table, c.Key)
		return
	case "ttl":
		c.N = debt
		if debt == 0 {
			c.N = -2
		}
		return
	case "exists":
		return
	}
	c.N = 0
	tau, inc := c.Interval*c.Burst, c.Interval*c.Cost
	c.Allowed, c.Retry = true, 0
	switch {
	case c.Cost < 0:
		debt = max(0, debt+inc)
		if w.bug == "refund-twice" {
			debt = max(0, debt+inc)
		}
	case debt+inc > tau && !(w.bug == "one-more" && debt+inc <= tau+c.Interval) || debt+inc == tau && w.bug == "one-less":
		c.Allowed = false
		c.Retry = max(1, debt+inc-tau)
		switch w.bug {
		case "short-waits":
			c.Retry = (c.Retry + 1) / 2
		case "long-waits":
			c.Retry *= 2
		}
		if c.Cost > c.Burst {
			c.Retry = -1
		}
	default:
		debt += inc
	}
	c.Reset = debt
	c.Remaining = max(0, tau-debt) / c.Interval
	if c.Allowed && c.Cost != 0 && !(w.bug == "forgetful" && c.Cost > 0 && w.r.IntN(20) == 0) {
		table[c.Key] = now + debt
		if debt == 0 {
			delete(table, c.Key)
		}
	}
}

// save writes the run as a real one lies.
func (w *world) save(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"trace", "log"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lines := func(file string, n int, line func(int) any) {
		var b []byte
		for i := range n {
			x, err := json.Marshal(line(i))
			if err != nil {
				t.Fatal(err)
			}
			b = append(append(b, x...), '\n')
		}
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := history.WriteJSON(dir, history.RunFile, w.run); err != nil {
		t.Fatal(err)
	}
	lines(history.EventsFile, len(w.events), func(i int) any { return w.events[i] })
	lines(history.HealthFile, len(w.health), func(i int) any { return w.health[i] })
	for _, n := range w.nodes {
		lines("trace/"+n.id+".jsonl", len(n.rows), func(i int) any { return n.rows[i] })
		if err := os.WriteFile(filepath.Join(dir, "log", n.id+".log"), []byte("time=1 level=INFO msg=ready\n"+w.prints[n.id]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
