package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"limitd/cluster"
)

// Config of one run.
type Config struct {
	Seed   uint64
	Length time.Duration // virtual time of faults
	Dir    string        // for the nodes' files; emptied afterwards
}

// Result of a run.
type Result struct {
	Violations []string
	Counts     map[string]int
	Ends       map[string]int // reasons for which nodes ended themselves
	Diary      string         // what was logged last
	Virtual    time.Duration
	Longest    time.Duration // without an answered call
	Recovery   time.Duration // from the heal until every node answers for every key
}

// begin lets the time go by until shortly before midnight, at each second seed, and has wall
// clocks, from which cluster time is taken, be wrong by less: a day and a week begin soon.
func (w *world) begin() {
	if w.seed%2 == 0 {
		const least = 40 * time.Second // until calls are answered
		time.Sleep(time.Until(time.Date(2000, time.January, 2, 0, 0, 0, 0, time.UTC).Add(-time.Minute - least)))
		for _, m := range w.machines {
			m.wrong.Store(m.wrong.Load() / 60)
		}
	}
}

// world is everything that is simulated.
type world struct {
	seed     uint64
	settings cluster.Config // of every node
	dir      string
	net      *network
	machines []*machine
	oracle   *oracle
	clients  clients
	diary    diary

	images  atomic.Int64
	over    atomic.Bool // nothing is started any more
	running sync.WaitGroup

	mu         sync.Mutex
	rng        *rand.Rand // for whoever has no stream of his own
	violations []string
	counts     map[string]int
	ends       map[string]int
	outages    []time.Time // when machines lost their power
}

// The streams of random numbers of a seed.
const (
	streamWorld uint64 = iota
	streamNetwork
	streamNemesis
	streamShape
	streamMachines = 100
	streamClients  = 200
)

func newWorld(cfg Config) *world {
	w := &world{
		seed: cfg.Seed, dir: filepath.Join(cfg.Dir, fmt.Sprintf("seed-%d", cfg.Seed)),
		rng: rand.New(rand.NewPCG(cfg.Seed, streamWorld)), counts: map[string]int{}, ends: map[string]int{},
	}
	shape := rand.New(rand.NewPCG(cfg.Seed, streamShape))
	size := 3
	if shape.IntN(6) == 0 {
		size = 5
	}
	timeout := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}[shape.IntN(3)]
	w.settings = cluster.Config{
		Insecure: true, Heartbeat: timeout, Election: timeout, Lease: timeout, DiskStall: 8 * time.Second,
		SnapshotInterval: time.Duration(1+shape.IntN(5)) * time.Second, SnapshotThreshold: uint64(4 + shape.IntN(40)),
		TrailingBytes: 1 + int64(shape.IntN(3000)), TrailingFloor: uint64(1 + shape.IntN(20)), MinFreeDisk: 1, Version: "sim",
	}
	w.settings.SnapshotPortion = []int{0, 1, 5}[shape.IntN(3)]
	var addrs []string
	for i := range size {
		id := fmt.Sprintf("n%d", i+1)
		m := cluster.Member{ID: id, Resp: fmt.Sprintf("10.0.0.%d:6379", i+1), Peer: fmt.Sprintf("10.0.0.%d:7000", i+1)}
		w.settings.Members = append(w.settings.Members, m)
		addrs = append(addrs, m.Peer)
	}
	w.net = newNetwork(rand.New(rand.NewPCG(cfg.Seed, streamNetwork)), addrs)
	for i, member := range w.settings.Members {
		m := &machine{w: w, member: member, index: i, rng: rand.New(rand.NewPCG(cfg.Seed, streamMachines+uint64(i)))}
		m.dir = filepath.Join(w.dir, member.ID)
		m.wrong.Store(m.rng.Int64N(int64(2*time.Hour)) - int64(time.Hour))
		m.boot()
		w.machines = append(w.machines, m)
	}
	w.oracle = newOracle(w)
	return w
}

// Run simulates a cluster. It must be called in a bubble of testing/synctest.
func Run(cfg Config) Result {
	w := newWorld(cfg)
	w.begin()
	begun := time.Now()
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return Result{Violations: []string{err.Error()}}
	}
	defer os.RemoveAll(w.dir)
	done := make(chan struct{})
	w.running.Go(func() { w.net.watch(done) })
	for _, m := range w.machines {
		m.start()
	}
	w.awaitService("at the start")
	w.clients.start(w)
	w.torment(cfg.Length)
	healed := time.Now()
	w.heal()
	w.awaitService("after the heal")
	recovery := time.Since(healed)
	w.clients.stop()
	w.awaitAgreement()
	w.over.Store(true)
	virtual := time.Since(begun)
	w.close()
	close(done)
	w.running.Wait()
	time.Sleep(2 * time.Minute) // whoever waits now, waits for ever
	w.oracle.count()
	return Result{
		Violations: w.violations, Counts: w.counts, Ends: w.ends, Diary: w.diary.String(),
		Virtual: virtual, Longest: w.clients.longest, Recovery: recovery,
	}
}

// awaitService waits until every node answers for every key.
func (w *world) awaitService(when string) {
	deadline := time.Now().Add(patience)
	for _, m := range w.machines {
		for _, k := range w.clients.known() {
			for {
				err := w.clients.probe(m, k)
				if err == nil || w.failed() {
					break
				}
				if time.Now().After(deadline) {
					w.fail("no service %s: %s does not answer for %s: %v", when, m.member.ID, k.name, err)
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
}

// patience is for how long a cluster without faults may do without a leader, or a
// node without the others' state.
const patience = 40 * time.Second

// awaitAgreement waits until all nodes have the same state.
func (w *world) awaitAgreement() {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		same, all := true, ""
		var first string
		for _, m := range w.machines {
			s := "down"
			if p := m.up(); p != nil {
				st := p.node.FSM().State()
				s = fmt.Sprintf("last %d, chain %x, T %d", st.Last, st.Chain, st.T)
			}
			if first == "" {
				first = s
			}
			same = same && s == first && s != "down"
			all += fmt.Sprintf("\n\t%s: %s", m.member.ID, s)
		}
		if same || w.failed() {
			return
		}
		if time.Now().After(deadline) {
			w.fail("the nodes do not come to one state:%s", all)
			return
		}
	}
}

// close stops all nodes.
func (w *world) close() {
	var wg sync.WaitGroup
	for _, m := range w.machines {
		m.mu.Lock()
		p := m.process
		m.mu.Unlock()
		if p != nil && p.node != nil {
			wg.Go(p.stop) // one that is stopped already is waited for with all that runs
		}
	}
	wg.Wait()
}

// fail notes a violation.
func (w *world) fail(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	w.log("VIOLATION %s", s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) < 10 {
		w.violations = append(w.violations, time.Now().Format("04:05.000 ")+s)
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations) > 0
}

func (w *world) count(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what] += n
}

// ended notes why a node ended itself.
func (w *world) ended(name string, why error) {
	w.log("%s ends itself: %v", name, why)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends[reason(why)]++
}

// chance is a number below n.
func (w *world) chance(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// outage notes that a machine loses its power, and with it its receipt.
func (w *world) outage() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = append(w.outages, time.Now())
}

// rebooted says that a majority of machines may have lost their receipts, so that
// cluster time goes on from wall clocks.
func (w *world) rebooted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	recent := 0
	for _, t := range w.outages {
		if time.Since(t) < time.Minute {
			recent++
		}
	}
	return recent > len(w.machines)/2
}
