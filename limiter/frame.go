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
		if c.Tag == 0 {
			dst = append(dst, byte(c.Op), c.NS)
		} else {
			dst = append(dst, byte(c.Op)|frameTagged, c.NS)
			dst = binary.AppendUvarint(dst, c.Tag)
		}
		dst = appendBytes(dst, c.Key)
		switch c.Op {
		case Take:
			dst = append(dst, byte(c.Limit.Algorithm))
			dst = binary.AppendVarint(dst, c.Limit.Interval)
			dst = binary.AppendVarint(dst, c.Limit.Burst)
			dst = binary.AppendVarint(dst, c.Cost)
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
func readRequest(dst []Call, b []byte) ([]Call, error) {
	r := frameReader{b: b}
	if v := r.byte(); v != frameVersion {
		return nil, fmt.Errorf("request of version %d, this node reads %d", v, frameVersion)
	}
	n := r.uvarint()
	if n > maxFrameCalls || n > uint64(len(b)) {
		return nil, errFrame
	}
	for ; n > 0 && !r.bad; n-- {
		c := Call{Op: Op(r.byte()), NS: r.byte()}
		if c.Op&frameTagged != 0 {
			c.Op &^= frameTagged
			c.Tag = r.uvarint()
		}
		c.Key = r.key()
		switch c.Op {
		case Take:
			c.Limit.Algorithm = algo.Algorithm(r.byte())
			c.Limit.Interval, c.Limit.Burst, c.Cost = r.varint(), r.varint(), r.varint()
			if c.Limit.Check() != nil || c.Limit.CheckCost(c.Cost) != nil {
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
		case Type, TTL, Flush, FlushAll:
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
			v := &c.Verdict
			allowed := byte(0)
			if v.Allowed {
				allowed = 1
			}
			dst = append(dst, allowed)
			dst = binary.AppendVarint(dst, v.Limit)
			dst = binary.AppendVarint(dst, v.Remaining)
			dst = binary.AppendVarint(dst, v.RetryAfter)
			dst = binary.AppendVarint(dst, v.ResetAfter)
		default:
			dst = binary.AppendVarint(dst, c.N)
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
			c.Verdict.Allowed = r.byte() == 1
			c.Verdict.Limit, c.Verdict.Remaining = r.varint(), r.varint()
			c.Verdict.RetryAfter, c.Verdict.ResetAfter = r.varint(), r.varint()
		default:
			c.N = r.varint()
		}
	}
	if r.bad || len(r.b) > 0 {
		return 0, 0, errFrame
	}
	return n, index, nil
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// frameReader reads a frame; after the first fault bad is set and all is zero.
type frameReader struct {
	b   []byte
	bad bool
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
