package limiter

import (
	"crypto/sha256"
	"encoding/binary"

	"limitd/algo"
	"limitd/mutant"
)

// A call may carry a token, its ID. What was charged under it is remembered in the
// entry that charges it, for IDTTL of cluster time: the same call under the ID gets
// the same answer, and is not charged again. So a caller may repeat what was in doubt.
// What was denied is not remembered: it is decided afresh.
//
// A remembered charge is a record like others, in a namespace of its own beside that of
// its keys, with the token as its key. FORMAT.md describes its state.

// MaxID is the longest token, in bytes.
const MaxID = 128

// idSpace is added to a call's namespace for what is remembered of it.
const idSpace = Namespaces

// idIdent is the identity of such a record.
var idIdent = []byte{255}

const chargeVersion = 1

// charge is a call that was charged under an ID.
type charge struct {
	digest [16]byte // of the call
	at     int64    // cluster time of the decision
	parts  []charged
}

// charged is what one limit was charged.
type charged struct {
	place    uint64 // of the record: a digest of key and identity
	cost     int64
	until    int64 // cluster time at which the charge counts no more
	refunded bool
	verdict  algo.Verdict
}

// digestOf tells calls apart: the command, its keys, limits and costs.
func digestOf(c *Call) (d [16]byte) {
	b := make([]byte, 0, 256)
	b = append(b, byte(c.Op))
	if c.Op == Take {
		b = appendBytes(b, c.Key)
		b = appendString(b, c.Limit.String())
		b = binary.AppendVarint(b, c.Cost)
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		b = appendBytes(b, p.Key)
		b = appendString(b, p.Limit.String())
		b = binary.AppendVarint(b, p.Cost)
	}
	sum := sha256.Sum256(b)
	copy(d[:], sum[:])
	return d
}

// placeOf names a record in 64 bits.
func placeOf(key, ident []byte) uint64 {
	sum := sha256.Sum256(appendBytes(appendBytes(make([]byte, 0, 128), key), ident))
	return binary.LittleEndian.Uint64(sum[:])
}

// repeats answers a call whose ID is known, and says so.
func (r *round) repeats(c *Call) bool {
	f := r.find(c.idHash, c.NS+idSpace, c.ID, idIdent)
	if f.state == nil {
		return false
	}
	ch, ok := readCharge(f.state)
	if !ok || ch.digest != digestOf(c) || len(ch.parts) != max(1, len(c.Parts)) {
		c.Status = IDTaken
		return true
	}
	c.At, c.Repeated = ch.at, true
	c.changes = f.rec != nil // while the round may yet fail, so may what it remembers
	if c.Op == Take {
		c.Verdict = ch.parts[0].verdict
		return true
	}
	for i := range c.Parts {
		c.Parts[i].Verdict = ch.parts[i].verdict
	}
	c.conclude()
	return true
}

// remember keeps what the call was charged under its ID. until are the times at which
// the parts' charges count no more.
func (r *round) remember(c *Call, until []int64) {
	ch := charge{digest: digestOf(c), at: r.now}
	if c.Op == Take {
		ch.parts = []charged{{placeOf(c.Key, c.Limit.Ident()), c.Cost, until[0], false, c.Verdict}}
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		ch.parts = append(ch.parts, charged{placeOf(p.Key, p.Limit.Ident()), p.Cost, until[i], false, p.Verdict})
	}
	f := r.find(c.idHash, c.NS+idSpace, c.ID, idIdent)
	if mutant.On("id-not-kept") {
		return
	}
	r.keep(c.idHash, c.NS+idSpace, c.ID, idIdent, f, algo.Effect{
		Op: algo.Replace, State: appendCharge(nil, &ch), Expiry: r.now + int64(r.l.cfg.IDTTL),
	})
	r.ids++
}

// refundID gives back, once, what the call of the ID was charged, at most -Cost.
func (r *round) refundID(c *Call) {
	c.At = r.now
	f := r.find(c.idHash, c.NS+idSpace, c.ID, idIdent)
	ch, ok := readCharge(f.state)
	if f.state == nil || !ok {
		c.Status = IDUnknown
		return
	}
	var part *charged
	for i, place := 0, placeOf(c.Key, c.Limit.Ident()); i < len(ch.parts); i++ {
		if ch.parts[i].place == place {
			part = &ch.parts[i]
		}
	}
	if part == nil {
		c.Status = IDUnknown
		return
	}
	units := part.cost
	if n := -c.Cost; n > 0 {
		units = min(units, n)
	}
	rec := r.find(c.hash, c.NS, c.Key, c.Limit.Ident())
	r.must, c.changes = true, true // the answer is an agreed one
	if part.refunded || part.until <= r.now || units < 1 {
		c.Verdict, _ = r.run(&c.Limit, rec.state, 0)
		c.Verdict.Allowed, c.Verdict.RetryAfter, c.Verdict.Delay = true, 0, 0
		c.Repeated = part.refunded
		return
	}
	v, e := c.Limit.Refund(rec.state, r.now, r.offset, units, ch.at, r.next[:0])
	if c.Status = r.refuse(c, &rec, &e, false); c.Status != OK {
		return
	}
	if e.Op != algo.None {
		r.keep(c.hash, c.NS, c.Key, c.Limit.Ident(), rec, e)
	}
	part.refunded = !mutant.On("refund-id-twice")
	f = r.find(c.idHash, c.NS+idSpace, c.ID, idIdent)
	expiry := f.expiry
	r.keep(c.idHash, c.NS+idSpace, c.ID, idIdent, f, algo.Effect{Op: algo.Replace, State: appendCharge(nil, &ch), Expiry: expiry})
	c.Verdict = v
}

func appendCharge(dst []byte, ch *charge) []byte {
	dst = append(dst, chargeVersion)
	dst = append(dst, ch.digest[:]...)
	dst = binary.AppendVarint(dst, ch.at)
	dst = append(dst, byte(len(ch.parts)))
	for i := range ch.parts {
		p := &ch.parts[i]
		dst = binary.LittleEndian.AppendUint64(dst, p.place)
		dst = binary.AppendVarint(dst, p.cost)
		dst = binary.AppendVarint(dst, p.until)
		dst = append(dst, oneIf(p.refunded))
		dst = binary.AppendVarint(dst, p.verdict.Limit)
		dst = binary.AppendVarint(dst, p.verdict.Remaining)
		dst = binary.AppendVarint(dst, p.verdict.ResetAfter)
		dst = binary.AppendVarint(dst, p.verdict.Delay)
	}
	return dst
}

// readCharge reads what appendCharge wrote; false: it did not.
func readCharge(b []byte) (ch charge, ok bool) {
	r := frameReader{b: b}
	if r.byte() != chargeVersion || len(r.b) < len(ch.digest) {
		return ch, false
	}
	r.b = r.b[copy(ch.digest[:], r.b):]
	ch.at = r.varint()
	n := int(r.byte())
	if n > MaxParts {
		return ch, false
	}
	ch.parts = make([]charged, n)
	for i := range ch.parts {
		p := &ch.parts[i]
		if len(r.b) < 8 {
			return ch, false
		}
		p.place = binary.LittleEndian.Uint64(r.b)
		r.b = r.b[8:]
		p.cost, p.until = r.varint(), r.varint()
		p.refunded = r.byte() == 1
		v := &p.verdict
		v.Allowed = true
		v.Limit, v.Remaining, v.ResetAfter, v.Delay = r.varint(), r.varint(), r.varint(), r.varint()
	}
	return ch, !r.bad && len(r.b) == 0
}
