package limiter

import "limitd/algo"

// Op is what a call asks.
type Op uint8

const (
	Take     Op = iota // decide Limit with Cost on Key (0: a peek; negative: a refund)
	Reset              // remove all records of Key and More; N = keys that held state
	Exists             // N = how many of Key and More hold state
	Type               // N = 1 if Key holds state, else 0
	TTL                // N = ns until Key means nothing, NoKey if it holds no state
	Flush              // remove all records of NS
	FlushAll           // remove all records
)

// NoKey is TTL's N for a key that holds no state.
const NoKey = -2

// Namespaces is the number of namespaces (SELECT 0 to 15).
const Namespaces = 16

// Call is one request and its answer. Key, More and Limit must stay valid until
// Do returns.
type Call struct {
	Op    Op
	NS    uint8
	Key   []byte
	More  [][]byte // further keys of Reset and Exists
	Limit algo.Limit
	Cost  int64
	Tag   uint64 // by which traces name the call; 0: none

	Status  Status       // OK, or why there is no answer
	Verdict algo.Verdict // of Take
	N       int64        // of the other ops

	hash    uint64 // of Key, by the table that the task names
	changes bool   // its answer depends on an entry of its own being committed
}

// frees says that the call can give capacity back, so that a denial decided
// before it may no longer hold.
func (c *Call) frees() bool {
	switch c.Op {
	case Take:
		return c.Cost < 0
	case Reset, Flush, FlushAll:
		return true
	}
	return false
}

// size is what the call costs in the queue, in bytes.
func (c *Call) size() int64 {
	n := int64(len(c.Key)) + 64
	for _, k := range c.More {
		n += int64(len(k)) + 24
	}
	return n
}

// keys calls fn for each key of the call, in order.
func (c *Call) keys(fn func(key []byte)) {
	fn(c.Key)
	for _, k := range c.More {
		fn(k)
	}
}

// Chunk is what one read of a connection yields: calls that are decided in order
// and answered in order. It belongs to one connection and is used again and again.
type Chunk struct {
	Calls []Call

	task  *task  // kept from one Do to the next, for its channel
	frame []byte // memory of the request to the leader
	next  [stateRoom]byte
}

// Reset empties the chunk and keeps its memory.
func (c *Chunk) Reset() { c.Calls = c.Calls[:0] }

// Add appends a zeroed call. The pointer is valid until the next Add.
func (c *Chunk) Add() *Call {
	n := len(c.Calls)
	if n < cap(c.Calls) {
		c.Calls = c.Calls[:n+1]
		c.Calls[n] = Call{}
	} else {
		c.Calls = append(c.Calls, Call{})
	}
	return &c.Calls[n]
}
