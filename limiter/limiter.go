package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"limitd/algo"
	"limitd/fsm"
	"limitd/trace"
)

// Proposer is the agreement that the limiter needs: one batch at a time.
type Proposer interface {
	// Begin waits until no batch is in flight and takes the turn; an error says
	// that this node cannot decide now.
	Begin() (fsm.Turn, error)
	// Commit proposes the entry and returns, ending the turn, when the entry is
	// applied here or has failed.
	Commit(entry []byte) (index uint64, o fsm.Outcome)
	// Abort ends the turn; nothing is proposed.
	Abort()
}

// Router tells where a call goes.
type Router interface {
	// Leading says that this node leads and may decide.
	Leading() bool
	// Touch returns a cluster time (ns) that is not ahead, and whether denials
	// (on the leader: reads too) may be answered from applied state now.
	Touch() (now int64, ok bool)
	// AwaitLeader waits until a leader is known, here or elsewhere.
	AwaitLeader(d time.Duration) bool
	// Forward sends payload to the leader's handler. Applied: reply is the
	// answer. Refused: certainly no leader took it. Unknown: neither is known.
	// payload is the caller's again when Forward returns.
	Forward(payload []byte, timeout time.Duration) (reply []byte, o fsm.Outcome)
}

// Config of a limiter.
type Config struct {
	Node           string          // this node's id, which answers with TRACE name
	RequestTimeout time.Duration   // bound on the time of one Do; 1 s
	LeaderWait     time.Duration   // how long a call waits for a leader; 200 ms
	MaxQueue       int             // requests that may wait for a round; 65536
	MaxQueueBytes  int64           // and their bytes; 64 MiB
	MaxMemory      int64           // bytes of table in use above which new records are refused; 0: no bound
	MaxLogEntries  int             // of one sliding log; 100000
	MaxIDs         int             // charges that are remembered by an ID; 1000000
	IDTTL          time.Duration   // for how long, in cluster time; 60 s
	DiskLow        func() bool     // free disk is below the floor: charges are refused; may be nil
	Trace          func(trace.Row) // is told of each decision; nil: nobody is
	Loading        func() bool     // this node is still loading its state: nothing is decided or routed; may be nil
}

// DefaultConfig returns the values to start from.
func DefaultConfig() Config {
	return Config{
		RequestTimeout: time.Second,
		LeaderWait:     200 * time.Millisecond,
		MaxQueue:       65536,
		MaxQueueBytes:  64 << 20,
		MaxLogEntries:  100_000,
		MaxIDs:         1_000_000,
		IDTTL:          time.Minute,
	}
}

// Limiter decides calls. Its methods may be used by many goroutines at once.
type Limiter struct {
	cfg Config
	f   *fsm.FSM
	p   Proposer
	r   Router

	start  time.Time
	q      queue
	ws     *writeSet
	fence  atomic.Uint64 // local denials wait until this index is applied here
	stats  counters
	limits Limits
	round  uint64 // counts rounds; the rounds' goroutine only

	inFlight struct { // the tasks of the round that is proposed
		sync.Mutex
		tasks []*task
	}
	pace       pacer
	stop       chan struct{}
	roundsOver chan struct{}
	stopped    sync.WaitGroup
	remote     sync.Pool // *remoteTask
}

// New makes a limiter over the applied state of f and starts its rounds.
func New(cfg Config, f *fsm.FSM, p Proposer, r Router) *Limiter {
	l := &Limiter{cfg: cfg, f: f, p: p, r: r, start: time.Now(), ws: newWriteSet(), stop: make(chan struct{}), roundsOver: make(chan struct{})}
	l.q.init(cfg.MaxQueue, cfg.MaxQueueBytes)
	l.stopped.Add(2)
	go l.runRounds()
	go l.runDeadlines()
	return l
}

// Close answers what waits with TryAgain and stops the rounds. It waits for the
// round in flight.
func (l *Limiter) Close() {
	l.q.close()
	close(l.stop)
	l.stopped.Wait()
}

// now is the limiter's own clock for deadlines, ns since New.
func (l *Limiter) now() int64 { return int64(time.Since(l.start)) }

// Do answers all calls of the chunk, in order. It returns within the request
// timeout (and the few milliseconds that deadlines are checked in).
func (l *Limiter) Do(c *Chunk) {
	if l.cfg.Loading != nil && l.cfg.Loading() {
		failAll(c.Calls, Loading)
	} else if n := l.answerAlone(c); n < len(c.Calls) {
		l.agree(c, c.Calls[n:])
	}
	l.stats.count(c.Calls)
}

// Parse reads a limit expression, from memory if it was read before.
func (l *Limiter) Parse(expr []byte) (algo.Limit, error) { return l.limits.Parse(expr) }

// Size is the number of records of a namespace on this node, expired ones
// that are not yet dropped included.
func (l *Limiter) Size(ns uint8) int { return l.f.Table().Len(ns) }

// countIDs is the number of charges that are remembered by their IDs, expired ones that
// are not yet dropped included.
func (l *Limiter) countIDs() (n int) {
	tab := l.f.Table()
	for ns := uint8(idSpace); ns < idSpace+Namespaces; ns++ {
		n += tab.Len(ns)
	}
	return n
}

// Memory is about the bytes that a key takes in the table of this node; 0 if it holds no state.
func (l *Limiter) Memory(ns uint8, key []byte) int64 {
	tab := l.f.Table()
	return tab.Memory(tab.Hash(ns, key), ns, key, l.looksAt())
}

// Scan returns about count keys of ns that hold state on this node, from cursor
// on, and the next cursor; 0 ends the iteration.
func (l *Limiter) Scan(ns uint8, cursor uint64, count int) ([][]byte, uint64) {
	return l.f.Table().Scan(ns, cursor, count, l.looksAt())
}

// looksAt is the cluster time by which this node tells what it holds.
func (l *Limiter) looksAt() int64 {
	if now, ok := l.r.Touch(); ok {
		return now
	}
	return l.f.Time()
}
