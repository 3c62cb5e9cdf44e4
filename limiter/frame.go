package limiter

import (
	"encoding/binary"
	"errors"
	"fmt"

	"limitd/algo"
	"limitd/fsm"
)

// frameVersion is the first byte of a request and of a reply between nodes; see
// FORMAT.md.
const frameVersion = 1

// frameTagged, in a call's op, says that its tag follows.
const frameTagged = 0x80

// frameID, in a call's op, says that its ID follows.
const frameID = 0x40

// frameTraced, in a call's op, says that its origin is asked for.
const frameTraced = 0x20

// Bounds of a request that a node takes from another, whatever it says.
const (
	maxFrameCalls = 1 << 16
	maxFrameKeys  = 1 << 16
)

var errFrame = errors.New("damaged frame")

// appendRequest appends the calls as a request.
func appendRequest(dst []byte, calls []Call) []byte {
	dst = append(dst, frameVersion)
	dst = binary.AppendUvarint(dst, uint64(len(calls)))
	for i := range calls {
		c := &calls[i]
		op := byte(c.Op)
		if c.Tag != 0 {
			op |= frameTagged
		}
		if len(c.ID) > 0 {
			op |= frameID
		}
		if c.Traced {
			op |= frameTraced
		}
		dst = append(dst, op, c.NS)
		if c.Tag != 0 {
			dst = binary.AppendUvarint(dst, c.Tag)
		}
		if len(c.ID) > 0 {
			dst = appendBytes(dst, c.ID)
		}
		dst = appendBytes(dst, c.Key)
		switch c.Op {
		case Take:
			dst = append(dst, byte(c.Limit.Algorithm))
			if c.Limit.Algorithm == algo.Throttle {
				dst = binary.AppendVarint(dst, c.Limit.Interval)
				dst = binary.AppendVarint(dst, c.Limit.Burst)
			} else {
				dst = append(dst, oneIf(c.Peek))
				dst = appendString(dst, c.Limit.String())
			}
			dst = binary.AppendVarint(dst, c.Cost)
		case TakeAll:
			dst = append(dst, oneIf(c.Peek), byte(len(c.Parts)))
			for i := range c.Parts {
				p := &c.Parts[i]
				dst = appendBytes(dst, p.Key)
				dst = appendString(dst, p.Limit.String())
				dst = binary.AppendVarint(dst, p.Cost)
			}
		case Reset, Exists:
			dst = binary.AppendUvarint(dst, uint64(len(c.More)))
			for _, k := range c.More {
				dst = appendBytes(dst, k)
			}
		}
	}
	return dst
}

// readRequest appends the calls of a request to dst. Their keys alias b.
func readRequest(dst []Call, b []byte, limits *Limits) ([]Call, error) {
	r := frameReader{b: b, limits: limits}
	if v := r.byte(); v != frameVersion {
		return nil, fmt.Errorf("request of version %d, this node reads %d", v, frameVersion)
	}
	n := r.uvarint()
	if n > maxFrameCalls || n > uint64(len(b)) {
		return nil, errFrame
	}
	for ; n > 0 && !r.bad; n-- {
		c := Call{Op: Op(r.byte()), NS: r.byte()}
		op := c.Op
		c.Op &^= frameTagged | frameID | frameTraced
		c.Traced = op&frameTraced != 0
		if op&frameTagged != 0 {
			c.Tag = r.uvarint()
		}
		if op&frameID != 0 {
			if c.ID = r.key(); len(c.ID) == 0 || len(c.ID) > MaxID || c.Op != Take && c.Op != TakeAll {
				return nil, errFrame
			}
		}
		c.Key = r.key()
		switch c.Op {
		case Take:
			if a := algo.Algorithm(r.byte()); a == algo.Throttle {
				c.Limit = algo.Limit{Algorithm: a, Interval: r.varint(), Burst: r.varint()}
				if c.Limit.Check() != nil {
					return nil, errFrame
				}
			} else {
				c.Peek = r.byte() == 1
				c.Limit = r.limit()
			}
			if c.Cost = r.varint(); c.Limit.CheckCost(c.Cost) != nil {
				return nil, errFrame
			}
		case TakeAll:
			c.Peek = r.byte() == 1
			n := int(r.byte())
			if n < 1 || n > MaxParts {
				return nil, errFrame
			}
			c.Parts = make([]Part, n)
			for i := range c.Parts {
				c.Parts[i] = Part{Key: r.key(), Limit: r.limit(), Cost: r.varint()}
			}
			if r.bad || CheckParts(c.Parts) != nil {
				return nil, errFrame
			}
		case Reset, Exists:
			k := r.uvarint()
			if k > maxFrameKeys || k > uint64(len(r.b)) {
				return nil, errFrame
			}
			if k > 0 {
				c.More = make([][]byte, 0, k)
			}
			for ; k > 0 && !r.bad; k-- {
				c.More = append(c.More, r.key())
			}
		case Type, TTL, Flush, FlushAll, List:
		default:
			return nil, errFrame
		}
		if c.NS >= Namespaces {
			return nil, errFrame
		}
		dst = append(dst, c)
	}
	if r.bad || len(r.b) > 0 {
		return nil, errFrame
	}
	return dst, nil
}

// appendReply appends the answers of calls, and the index of the newest entry
// that holds effects of theirs.
func appendReply(dst []byte, index uint64, calls []Call) []byte {
	if dst == nil {
		dst = make([]byte, 0, 16+12*len(calls))
	}
	dst = append(dst, frameVersion)
	dst = binary.AppendUvarint(dst, index)
	dst = binary.AppendUvarint(dst, uint64(len(calls)))
	for i := range calls {
		c := &calls[i]
		dst = append(dst, byte(c.Status))
		switch {
		case c.Status != OK:
		case c.Op == Take:
			dst = appendVerdict(dst, &c.Verdict)
			if c.Limit.Algorithm != algo.Throttle {
				dst = binary.AppendVarint(dst, c.Verdict.Delay)
				dst = binary.AppendVarint(dst, c.At)
			}
		case c.Op == TakeAll:
			dst = binary.AppendVarint(dst, c.At)
			for i := range c.Parts {
				dst = appendVerdict(dst, &c.Parts[i].Verdict)
				dst = binary.AppendVarint(dst, c.Parts[i].Verdict.Delay)
			}
		case c.Op == List:
			dst = binary.AppendUvarint(dst, uint64(len(c.Parts)))
			for i := range c.Parts {
				p := &c.Parts[i]
				dst = appendBytes(dst, p.Ident)
				dst = binary.AppendVarint(dst, p.N)
				dst = binary.AppendVarint(dst, p.Verdict.ResetAfter)
			}
		default:
			dst = binary.AppendVarint(dst, c.N)
		}
		if c.Traced && c.Status == OK {
			dst = appendOrigin(dst, c)
		}
	}
	return dst
}

// readReply reads the answers into the first calls and returns how many were
// answered, and the index.
func readReply(calls []Call, b []byte) (n int, index uint64, err error) {
	r := frameReader{b: b}
	if v := r.byte(); v != frameVersion {
		return 0, 0, fmt.Errorf("reply of version %d, this node reads %d", v, frameVersion)
	}
	index = r.uvarint()
	answered := r.uvarint()
	if answered > uint64(len(calls)) {
		return 0, 0, errFrame
	}
	for n = 0; n < int(answered); n++ {
		c := &calls[n]
		c.Status = Status(r.byte())
		switch {
		case c.Status >= statuses:
			return 0, 0, errFrame
		case c.Status != OK:
		case c.Op == Take:
			r.verdict(&c.Verdict)
			if c.Limit.Algorithm != algo.Throttle {
				c.Verdict.Delay, c.At = r.varint(), r.varint()
			}
		case c.Op == TakeAll:
			c.At = r.varint()
			for i := range c.Parts {
				r.verdict(&c.Parts[i].Verdict)
				c.Parts[i].Verdict.Delay = r.varint()
			}
			c.conclude()
		case c.Op == List:
			k := r.uvarint()
			if k > uint64(len(r.b)) {
				return 0, 0, errFrame
			}
			c.Parts = make([]Part, k)
			for i := range c.Parts {
				p := &c.Parts[i]
				p.Ident, p.N = r.key(), r.varint()
				p.Verdict.ResetAfter = r.varint()
			}
		default:
			c.N = r.varint()
		}
		if c.Traced && c.Status == OK {
			r.origin(c)
		}
	}
	if r.bad || len(r.b) > 0 {
		return 0, 0, errFrame
	}
	return n, index, nil
}

func appendVerdict(dst []byte, v *algo.Verdict) []byte {
	dst = append(dst, oneIf(v.Allowed))
	dst = binary.AppendVarint(dst, v.Limit)
	dst = binary.AppendVarint(dst, v.Remaining)
	dst = binary.AppendVarint(dst, v.RetryAfter)
	return binary.AppendVarint(dst, v.ResetAfter)
}

func oneIf(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// frameReader reads a frame; after the first fault bad is set and all is zero.
type frameReader struct {
	b      []byte
	bad    bool
	limits *Limits // of a request
}

// limit reads an expression, which is checked as if a client had sent it.
func (r *frameReader) limit() algo.Limit {
	text := r.key()
	if r.bad {
		return algo.Limit{}
	}
	l, err := r.limits.Parse(text)
	if err != nil {
		r.bad, r.b = true, nil
	}
	return l
}

func (r *frameReader) verdict(v *algo.Verdict) {
	v.Allowed = r.byte() == 1
	v.Limit, v.Remaining = r.varint(), r.varint()
	v.RetryAfter, v.ResetAfter = r.varint(), r.varint()
}

func (r *frameReader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *frameReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *frameReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// key reads a key that a record may have.
func (r *frameReader) key() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) || n > fsm.MaxKey {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}
