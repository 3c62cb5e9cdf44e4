package model

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"slices"
)

// Listed is what RL.LIST says of a record.
type Listed struct {
	Kind Identity
	Used int64 // ns of debt of a bucket; units of a counter, of a sliding one rounded up
	Left int64 // until it means nothing, ns
}

// Listed of a record in a state at now; false: it means nothing.
func (id Identity) Listed(s State, now int64) (Listed, bool) {
	l := Listed{Kind: id, Left: id.Left(s, now)}
	if id.bucket() {
		l.Used = s.Debt(now)
	} else {
		used := id.used(id.Meaning(s, now), now)
		used.Add(used, big.NewInt(id.weight()-1))
		l.Used = clamp(used.Quo(used, big.NewInt(id.weight())))
	}
	return l, l.Left > 0
}

// list of the records that a key has.
func list(ns uint8, key string, now int64, v View) (all []Listed) {
	for _, kind := range inOrder(v.Kinds(ns, key)) {
		if l, ok := kind.Listed(v.State(Record{ns, key, kind}), now); ok {
			all = append(all, l)
		}
	}
	return all
}

// ListedOf says whether a list can be one of a key that has had records of these kinds, if
// each record was looked at by itself, at now, in one of some states of it. Its times are
// in units of so many ns, rounded up.
func ListedOf(list []Listed, kinds []Identity, now, unit int64, states func(Identity) []State) bool {
	for _, kind := range inOrder(kinds) {
		said := len(list) > 0 && list[0].Kind == kind
		if !slices.ContainsFunc(states(kind), func(s State) bool {
			l, ok := kind.Listed(s, now)
			l.Left = Ceil(l.Left, unit)
			return ok == said && (!ok || l == list[0])
		}) {
			return false
		}
		if said {
			list = list[1:]
		}
	}
	return len(list) == 0
}

// inOrder are the identities that a key may have, CL.THROTTLE's too, in the order of RL.LIST.
func inOrder(kinds []Identity) []Identity {
	all := append([]Identity{ofThrottle}, kinds...)
	slices.SortFunc(all, func(a, b Identity) int { return bytes.Compare(a.bytes(), b.bytes()) })
	return all
}

// bytes of the identity, as it is kept.
func (id Identity) bytes() []byte {
	b := []byte{id.Algorithm}
	if id.Calendar.Unit > 0 {
		return append(append(b, 0), id.Calendar.bytes()...)
	}
	if id.Period == 0 {
		return b
	}
	return binary.AppendUvarint(b, uint64(id.Period))
}

// KindOf reads an identity as RL.LIST names it, by algorithm and period.
func KindOf(algorithm, period string) (Identity, error) {
	if algorithm == "throttle" && period == "" {
		return ofThrottle, nil
	}
	l, err := ParseLimit(algorithm + ":1/" + period)
	return l.Identity, err
}
