package check

import (
	"cmp"
	"container/heap"
	"encoding/json"
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

	again []*named         // calls with IDs
	made  map[uint64]int64 // by tag: the time of the decision that a repeated answer is of
	lists map[uint64][]any // by tag: what a list says

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

// bootOffset is the boot clock less the run's time, epochOffset cluster time less the boot clock:
// six seconds into the run it is eight o'clock in Greenwich, on a Friday.
const (
	bootOffset  = int64(5e15)
	epochOffset = int64(1_799_999_994e9) - bootOffset
	ms          = int64(time.Millisecond)
)

type simNode struct {
	id      string
	up      bool
	rows    []trace.Row
	table   map[string]int64
	records records
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
	at              int64  // when it was decided
	named, repeat   *named // it has an ID; it is a call that was made before
	tries           int
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
	w := &world{r: rand.New(rand.NewPCG(seed, 77)), bug: bug, until: seconds * 1000 * ms, offset: epochOffset, round: map[*simNode]uint64{}, made: map[uint64]int64{}, lists: map[uint64][]any{}, chain: trace.Hash(0)}
	w.limits = map[string][3]int64{"hot:0": {19, 60, 1}, "hot:1": {9, 100, 3}, "budget:0": {1999, 1, 86400}}
	for i := range 8 {
		w.limits["warm:"+strconv.Itoa(i)] = [3]int64{5, 12, 3}
	}
	for i := range 3 {
		n := &simNode{id: "n" + strconv.Itoa(i+1), up: true, table: map[string]int64{}, records: records{}}
		w.nodes = append(w.nodes, n)
		w.run.Nodes = append(w.run.Nodes, n.id)
		w.write(n, trace.Row{Kind: trace.Start, PID: 1 + i})
	}
	w.run.Seed, w.run.HeartbeatNS, w.run.IDTTLNS, w.run.Members = seed, 300*ms, 3000*ms, w.run.Nodes
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
