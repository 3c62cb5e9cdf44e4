package sim

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"limitd/cluster"
	"limitd/fsm"
	"limitd/limiter"
	"limitd/trace"
)

// machine is a computer of the cluster: a disk, a clock, and one process after the
// other.
type machine struct {
	w      *world
	member cluster.Member
	index  int
	rng    *rand.Rand // of its disk and its boots
	wrong  atomic.Int64

	mu      sync.Mutex
	clock   *clock
	dir     string
	starts  int
	process *process // nil: none runs
}

// process is a node while it runs. One that was killed runs on for a while, on files
// and a network that nobody else sees: what it says is not heard.
type process struct {
	m       *machine
	name    string // of the node, and how many starts it had
	dir     string
	nic     *nic
	node    *cluster.Node
	limiter *limiter.Limiter
	loading atomic.Bool
	ending  atomic.Bool // it is being stopped or killed
	dead    atomic.Bool // nothing that it says counts
	died    chan struct{}
	buried  sync.Once
	disk    diskState
}

// boot begins another life of the machine's kernel.
func (m *machine) boot() {
	m.clock = &clock{
		booted: time.Now(), before: time.Duration(1 + m.rng.Int64N(int64(time.Hour))),
		id: fmt.Sprintf("%s-boot-%d", m.member.ID, m.rng.Uint32()), wrong: &m.wrong,
	}
}

// start starts a process, if none runs.
func (m *machine) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil || m.w.over.Load() {
		return
	}
	m.starts++
	p := &process{m: m, name: fmt.Sprintf("%s/%d", m.member.ID, m.starts), dir: m.dir, died: make(chan struct{})}
	p.disk.rng = rand.New(rand.NewPCG(m.rng.Uint64(), 1))
	p.nic = m.w.net.attach(m.member.Peer)
	m.w.net.change(func() { p.nic.host.off = false })
	p.loading.Store(true)
	m.process = p
	m.w.log("%s starts", p.name)
	asProcess(p, func() { m.w.running.Go(p.run) })
}

// run opens the node as `limitd serve` does.
func (p *process) run() {
	if err := p.open(); err != nil {
		if !p.dead.Load() {
			p.m.w.fail("%s does not start: %v", p.name, err)
			p.kill(false)
		}
		return
	}
	err := p.node.Start()
	if err != nil && !p.dead.Load() {
		p.m.w.fail("%s does not start: %v", p.name, err)
	}
	p.loading.Store(false)
}

func (p *process) open() (err error) {
	w := p.m.w
	c := w.settings
	c.ID, c.DataDir, c.Clock, c.Network, c.Write, c.Fatal = p.m.member.ID, p.dir, p.m.clock, p.nic, p.write, p.fatal
	c.Logger = slog.New(slog.NewTextHandler(&w.diary, nil)).With("node", p.name)
	node, err := cluster.Open(c, nil)
	if err != nil {
		return err
	}
	node.FSM().Trace(p.trace)
	lc := limiter.DefaultConfig()
	lc.IDTTL = idTTL
	lc.Trace, lc.Loading = p.trace, p.loading.Load
	lim := limiter.New(lc, node.FSM(), node, node)
	node.SetHandler(lim.Serve)
	p.m.mu.Lock()
	p.node, p.limiter = node, lim
	p.m.mu.Unlock()
	if p.dead.Load() { // killed meanwhile, when there was nothing to close
		p.bury()
		return errors.New("killed")
	}
	return nil
}

// trace hears what the node tells, while it lives.
func (p *process) trace(row trace.Row) {
	if !p.dead.Load() {
		p.m.w.oracle.row(p, &row)
	}
}

// fatal is what a node calls that must not go on: cmd/limitd prints the reason and
// exits. Somebody starts it again.
func (p *process) fatal(err error) {
	if p.ending.Load() {
		return
	}
	p.m.w.ended(p.name, err)
	if errors.Is(err, fsm.ErrUntrusted) {
		p.m.w.fail("%s has diverged: %v", p.name, err)
	}
	p.kill(false)
	go p.m.startIn(2 * time.Second)
}

// startIn starts the machine's process after a time, if it has none by then.
func (m *machine) startIn(d time.Duration) {
	m.w.running.Go(func() {
		time.Sleep(d)
		m.start()
	})
}

// kill ends the process at this moment, as SIGKILL does, or with the power of its
// machine: what it has sent is on its way, what it has written is on disk.
func (p *process) kill(power bool) {
	if !p.ending.CompareAndSwap(false, true) {
		return
	}
	m := p.m
	p.nic.kill(power) // first: what it decides from now on leaves no trace, and reaches nobody
	p.dead.Store(true)
	next := filepath.Join(m.w.dir, fmt.Sprintf("%s-%d", m.member.ID, m.w.images.Add(1)))
	if err := copyImage(p.dir, next); err != nil {
		m.w.fail("image of %s: %v", p.dir, err)
	}
	close(p.died)
	m.mu.Lock()
	m.dir, m.process = next, nil
	if power {
		m.boot()
	}
	opened := p.node != nil
	m.mu.Unlock()
	m.w.log("%s is killed, power %v", p.name, power)
	if opened {
		m.w.running.Go(p.bury)
	}
}

// bury closes what is left of a killed process.
func (p *process) bury() {
	p.buried.Do(func() {
		p.close()
		os.RemoveAll(p.dir)
	})
}

// close closes the node in the order of `limitd serve`; the rounds wait for an entry
// that raft may never answer, so the two go side by side.
func (p *process) close() error {
	var wg sync.WaitGroup
	wg.Go(p.limiter.Close)
	err := p.node.Close()
	wg.Wait()
	return err
}

// stop is a plain stop, as on SIGTERM: leadership is handed over first.
func (p *process) stop() {
	m := p.m
	if p.node.Leading() {
		p.node.Transfer("")
	}
	if !p.ending.CompareAndSwap(false, true) {
		return
	}
	m.w.log("%s stops", p.name)
	close(p.died)
	err := p.close()
	p.nic.kill(false)
	p.dead.Store(true)
	if err != nil {
		m.w.fail("%s does not stop: %v", p.name, err)
	}
	m.mu.Lock()
	m.process = nil
	m.mu.Unlock()
}

// up is the machine's process, if one answers.
func (m *machine) up() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.process; p != nil && p.limiter != nil && !p.ending.Load() {
		return p
	}
	return nil
}

// frozen says that the process is paused.
func (p *process) frozen() bool {
	p.nic.n.mu.Lock()
	defer p.nic.n.mu.Unlock()
	return p.nic.host.frozen
}

// leads says that the node leads and may decide.
func (p *process) leads() bool { return !p.loading.Load() && p.node.Leading() }
