// Package limiter is what a decision is. STUB (API only): replaced by the limiter work.
package limiter

import (
	"time"

	"limitd/algo"
	"limitd/fsm"
)

// Op is what a call asks.
type Op uint8

const (
	Take     Op = iota // decide Limit with Cost on Key (0: a peek; negative: a refund)
	Reset              // remove all records of Key and More; N = keys that held state
	Exists             // N = how many of Key and More hold state
	Type               // N = 1 if Key holds state
	TTL                // N = ns until Key means nothing, -2 if it holds no state
	Flush              // remove all records of NS
	FlushAll           // remove all records
)

// Status is how a call ended.
type Status uint8

const (
	OK Status = iota
	TryAgain
	InDoubt
	ClusterDown
	Busy
	OOM
	Loading
)

// Call is one request and its answer. Key, More and Limit must stay valid until Do returns.
type Call struct {
	Op    Op
	NS    uint8
	Key   []byte
	More  [][]byte
	Limit algo.Limit
	Cost  int64

	Status  Status
	Verdict algo.Verdict
	N       int64
	hash    uint64
}

// Error is the text of a status that is no answer, as it goes to the client: code, blank, reason.
func (s Status) Error() string { panic("todo") }

// Chunk is what one read of a connection yields: calls decided and answered in order. It belongs to one connection.
type Chunk struct{ Calls []Call }

// Reset empties the chunk and keeps its memory. Add appends a zeroed call.
func (c *Chunk) Reset()     { panic("todo") }
func (c *Chunk) Add() *Call { panic("todo") }

// Proposer is the agreement that the limiter needs: one batch at a time. cluster.Node is one.
type Proposer interface {
	// Begin waits until no batch is in flight and takes the turn; an error says that this node cannot decide now.
	Begin() (fsm.Turn, error)
	// Commit proposes the entry, ends the turn, and returns when the entry is applied here or has failed.
	Commit(entry []byte) (index uint64, o fsm.Outcome)
	// Abort ends the turn; nothing is proposed.
	Abort()
}

// Router tells where a call goes. cluster.Node is one.
type Router interface {
	// Leading says that this node leads and may decide.
	Leading() bool
	// Touch returns a cluster time that is not ahead, and whether denials (on the leader: reads) may be answered from applied state now.
	Touch() (now int64, ok bool)
	// AwaitLeader waits until a leader is known, here or elsewhere.
	AwaitLeader(d time.Duration) bool
	// Forward sends payload to the leader's handler. Applied: the reply is the answer; Refused: certainly not delivered to a leader; Unknown: neither is known.
	Forward(payload []byte, timeout time.Duration) (reply []byte, o fsm.Outcome)
}

// Config of a limiter.
type Config struct {
	RequestTimeout time.Duration // 1 s
	LeaderWait     time.Duration // 200 ms
	MaxQueue       int           // requests, 65536
	MaxQueueBytes  int64         // 64 MiB
	MaxMemory      int64         // bytes of table above which new records are refused; 0: no bound
	DiskLow        func() bool   // free disk is below the floor; may be nil
}

// Limiter decides calls.
type Limiter struct{}

func New(cfg Config, f *fsm.FSM, p Proposer, r Router) *Limiter { panic("todo") }

// Do answers all calls of the chunk, in order. It returns within the request timeout.
func (l *Limiter) Do(c *Chunk) { panic("todo") }

// Serve is the handler for payloads that Forward sent on another node. reply(nil) says: not the leader. payload is the handler's until reply is called; reply may be called on any goroutine, once.
func (l *Limiter) Serve(payload []byte, timeout time.Duration, reply func([]byte)) { panic("todo") }

// Size is the number of keys of a namespace that hold state on this node; Scan is SCAN on this node.
func (l *Limiter) Size(ns uint8) int                                          { panic("todo") }
func (l *Limiter) Scan(ns uint8, cursor uint64, count int) ([][]byte, uint64) { panic("todo") }

// Stats are counters since start.
type Stats struct {
	Allowed, Denied, DeniedLocal, Busy, TryAgain, InDoubt, ClusterDown, OOM uint64
	Keys                                                                    uint64
	TableBytes                                                              int64
	Rounds, RoundCalls                                                      uint64
}

func (l *Limiter) Stats() Stats { panic("todo") }

// Close answers what waits with TryAgain and stops the rounds.
func (l *Limiter) Close() { panic("todo") }
