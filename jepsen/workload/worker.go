package workload

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// habit is how a worker picks the node that it asks.
type habit int

const (
	roams   habit = iota // any, another one now and then
	stays                // one
	follows              // the leader, if it is known
)

// habits of workers, in turn. A crowd has all of them.
var habits = [crowd]struct {
	habit   habit
	patient bool // does as a denial says
	ns      int
}{
	{habit: roams}, {habit: stays, patient: true}, {habit: follows}, {habit: roams}, {habit: roams, patient: true}, {habit: stays}, {habit: roams, ns: 3}, {habit: follows},
}

// worker is a client with a mind of its own.
type worker struct {
	*client
	index   int
	habit   habit
	patient bool
	r       *rand.Rand // what it asks
	way     *rand.Rand // whom it asks: what it asks does not depend on who there is
	keys    keys
	turn    int
	pace    pace
	ids     int    // how many calls had an ID
	past    []past // the newest of them
}

func newWorker(w *Workload, index int) *worker {
	h := habits[index%crowd]
	k := &worker{
		client: w.client(index*pipelined, pipelined), index: index, habit: h.habit, patient: h.patient,
		r:    rand.New(rand.NewPCG(w.c.Seed, 1000+2*uint64(index))),
		way:  rand.New(rand.NewPCG(w.c.Seed, 1001+2*uint64(index))),
		keys: keys{worker: index, ns: h.ns},
	}
	k.ns = h.ns
	k.pace.gap = w.c.gap(h.patient)
	k.pace.due = time.Now().Add(time.Duration(k.way.Int64N(int64(k.pace.gap) + 1)))
	return k
}

// patientRate is how many operations a patient worker asks for a second, at most.
const patientRate = 10

// gap is the time between two operations of a worker. What patient workers leave of the
// rate is the others'.
func (c Config) gap(patient bool) time.Duration {
	still := 0
	for i := range c.Workers {
		if habits[i%crowd].patient {
			still++
		}
	}
	rate := min(patientRate, c.Rate/float64(c.Workers))
	if !patient {
		rate = (c.Rate - rate*float64(still)) / float64(c.Workers-still)
	}
	return time.Duration(float64(time.Second) / rate)
}

// run takes turns until ctx ends.
func (k *worker) run(ctx context.Context) {
	defer k.drop()
	for ; sleep(ctx, k.pace.due); k.turn++ {
		if k.patient {
			k.wait(ctx)
			continue
		}
		calls := k.draw()
		k.repeat(ctx, calls, k.send(calls))
	}
}

// send sends calls to the node of the worker's choice. If there is none, they are not
// sent and never were.
func (k *worker) send(calls []call) []outcome {
	k.pace.spend(len(calls))
	node := k.choose()
	if node == "" {
		return nil
	}
	return k.ask(node, calls)
}

// draw draws a call, or a pipeline of them: either on different keys, so that no key is
// asked by more processes at a time than a crowd has workers, or all on one that is
// the worker's alone.
func (k *worker) draw() []call {
	if k.r.IntN(2) == 0 {
		return k.drawLimited()
	}
	n := 1
	if k.r.IntN(10) == 0 {
		n = 2 + k.r.IntN(pipelined-1)
	}
	alone := n > 1 && k.r.IntN(3) == 0
	key := k.keys.draw(k.r, k.turn)
	if alone {
		key = k.keys.of(k.r, cold(), k.turn)
	}
	var calls []call
	drawn := map[string]bool{}
	for {
		drawn[key.Name] = true
		op := drawOperation(Operations, k.r, key)
		calls = append(calls, k.w.call(op, key, op.Make(k.r, key)))
		if len(calls) == n {
			return calls
		}
		for !alone && drawn[key.Name] {
			key = k.keys.draw(k.r, k.turn)
		}
	}
}

// choose picks the node to ask; "" if there is none. A node that is no member any
// more is left.
func (k *worker) choose() string {
	nodes := k.w.c.Nodes()
	if len(nodes) == 0 {
		return ""
	}
	leader := k.w.leading()
	move := k.way.IntN(20) == 0
	any := nodes[k.way.IntN(len(nodes))]
	switch {
	case k.habit == stays:
		return nodes[k.index%len(nodes)]
	case k.habit == follows && slices.Contains(nodes, leader):
		return leader
	case k.conn == nil || move || !slices.Contains(nodes, k.node):
		return any
	}
	return k.node
}

// pace is an open loop: calls have their times whatever becomes of those before. What
// could not be sent in its time, but for the last one, is not made up for.
type pace struct {
	gap time.Duration // between two calls
	due time.Time     // of the next one
}

// spend says that n calls are sent now.
func (p *pace) spend(n int) {
	if late := time.Now().Add(-p.gap); p.due.Before(late) {
		p.due = late
	}
	p.due = p.due.Add(time.Duration(n) * p.gap)
}
