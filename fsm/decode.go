package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errShort = errors.New("ends too early")

// decoder reads effects one after the other. The slices of its effect alias the
// entry; it allocates only errors.
type decoder struct {
	rest    []byte
	version uint8 // of the entry
	at      int64 // cluster time of the entry, to which expiries are relative

	effect Effect
	same   bool // the state is the expiry in 8 bytes; effect.State is nil
}

// next reads the next effect into d.effect and d.same.
func (d *decoder) next() error {
	if len(d.rest) == 0 {
		return errShort
	}
	tag := d.rest[0]
	d.rest = d.rest[1:]
	d.effect = Effect{Op: Op(tag & opMask)}
	e := &d.effect
	d.same = tag&flagStateIsExp != 0
	cuts := tag&flagCut != 0
	if tag&^(opMask|flagStateIsExp|flagCut) != 0 || d.same && e.Op != OpReplace || cuts && (e.Op != OpSplice || d.version < VersionCut) {
		return fmt.Errorf("unknown flags %#02x", tag)
	}
	switch e.Op {
	case OpReplace, OpSplice, OpDelete:
		return d.record(e, cuts)
	case OpClear:
		ns, err := d.bytes(1)
		if err != nil {
			return err
		}
		e.NS = ns[0]
		return nil
	case OpClearAll:
		return nil
	case OpSetCluster, OpSetOffset:
		var err error
		if e.State, err = d.bytes(uint64(fixedState(e.Op))); err != nil {
			return err
		}
		if e.Op == OpSetCluster && [16]byte(e.State) == [16]byte{} {
			return errors.New("cluster id of zeros")
		}
		return nil
	}
	return fmt.Errorf("unknown op %d", e.Op)
}

func (d *decoder) record(e *Effect, cuts bool) error {
	ns, err := d.bytes(1)
	if err != nil {
		return err
	}
	e.NS = ns[0]
	if e.Key, err = d.sized(MaxKey); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	n, err := d.bytes(1)
	if err != nil {
		return err
	}
	if n[0] == 0 {
		return errors.New("empty identity")
	}
	if e.Ident, err = d.bytes(uint64(n[0])); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if e.Op == OpDelete {
		return nil
	}
	if e.Op == OpSplice {
		drop, err := d.uvarint(MaxState)
		if err != nil {
			return fmt.Errorf("drop: %w", err)
		}
		e.Drop = int(drop)
	}
	if cuts {
		cut, err := d.uvarint(MaxState - uint64(e.Drop))
		if err != nil {
			return fmt.Errorf("cut: %w", err)
		}
		e.Cut = int(cut)
	}
	delta, w := binary.Varint(d.rest)
	if w <= 0 {
		return fmt.Errorf("expiry: %w", errShort)
	}
	d.rest = d.rest[w:]
	e.Expiry = int64(uint64(d.at) + uint64(delta))
	if d.same {
		return nil
	}
	if e.State, err = d.sized(MaxState); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

func (d *decoder) bytes(n uint64) ([]byte, error) {
	if n > uint64(len(d.rest)) {
		return nil, errShort
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b, nil
}

func (d *decoder) uvarint(limit uint64) (uint64, error) {
	v, w := binary.Uvarint(d.rest)
	if w <= 0 {
		return 0, errShort
	}
	if v > limit {
		return 0, fmt.Errorf("%d is above %d", v, limit)
	}
	d.rest = d.rest[w:]
	return v, nil
}

// sized reads a length of at most limit and that many bytes.
func (d *decoder) sized(limit uint64) ([]byte, error) {
	n, err := d.uvarint(limit)
	if err != nil {
		return nil, err
	}
	return d.bytes(n)
}
