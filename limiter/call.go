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
	TakeAll            // decide all Parts: all are charged, or none is
	List               // Parts = the records of Key
)

// MaxParts is the most limits of one TakeAll.
const MaxParts = 32

// NoKey is TTL's N for a key that holds no state.
const NoKey = -2

// Namespaces is the number of namespaces (SELECT 0 to 15).
const Namespaces = 16

// Call is one request and its answer. Key, More and Limit must stay valid until
// Do returns.
type Call struct {
	Op     Op
	NS     uint8
	Key    []byte
	More   [][]byte // further keys of Reset and Exists
	Limit  algo.Limit
	Cost   int64
	Peek   bool   // Take, TakeAll: say whether Cost would pass, and charge nothing
	Parts  []Part // of TakeAll, at most MaxParts of different records; the answer of List
	Traced bool   // Take, TakeAll: Origin is asked for
	ID     []byte // Take, TakeAll: what is charged under it is charged once, see id.go; empty: none
	Tag    uint64 // by which traces name the call; 0: none

	Status   Status       // OK, or why there is no answer
	Verdict  algo.Verdict // of Take; of TakeAll Allowed, and the longest RetryAfter
	At       int64        // Take, TakeAll: cluster time of the decision, ns
	Origin   *Origin      // if Traced
	Repeated bool         // the answer is that of an earlier call with this ID
	N        int64        // of the other ops; of TakeAll which part denied with that wait, -1: none

	hash    uint64 // of Key, by the table that the task names
	idHash  uint64 // of ID
	changes bool   // its answer depends on an entry of its own being committed
}

// Part is one limit of a TakeAll and its answer, or one record of a List.
type Part struct {
	Key     []byte
	Limit   algo.Limit
	Cost    int64
	Verdict algo.Verdict

	Ident []byte // List: of the record; ResetAfter is the time until it means nothing
	N     int64  // List: what is used, see algo.Used

	hash uint64
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
	if len(c.ID) > 0 {
		n += int64(len(c.ID)) + 64 + 48*int64(max(1, len(c.Parts)))
	}
	for _, k := range c.More {
		n += int64(len(k)) + 24
	}
	for i := range c.Parts {
		n += int64(len(c.Parts[i].Key)) + 128
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
	parts []Part // memory of the calls' Parts

	task  *task  // kept from one Do to the next, for its channel
	frame []byte // memory of the request to the leader
	next  [stateRoom]byte
}

// partsKept is how many parts' memory a chunk keeps.
const partsKept = 256

// Reset empties the chunk and keeps its memory.
func (c *Chunk) Reset() {
	c.Calls = c.Calls[:0]
	clear(c.parts)
	if c.parts = c.parts[:0]; cap(c.parts) > partsKept {
		c.parts = nil
	}
}

// NewParts returns n zeroed parts for a call, in the chunk's memory.
func (c *Chunk) NewParts(n int) []Part {
	from := len(c.parts)
	for range n {
		c.parts = append(c.parts, Part{})
	}
	return c.parts[from:len(c.parts):len(c.parts)]
}

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
