package check

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// idSpace is added to the namespace of a call for what is remembered of its ID.
const idSpace = 16

// held is a record as effects make it.
type held struct {
	bytes  []byte
	expiry int64
	state  model.State // what the bytes say; of an ID nothing
}

// table is the state that effects make.
type table map[model.Record]held

// recordOf is the record of an effect.
func recordOf(x trace.Effect) (model.Record, error) {
	kind, err := model.ReadIdentity(x.Identity)
	if err == nil && (kind == model.IDs) != (x.NS >= idSpace) {
		err = fmt.Errorf("a record of identity %q in namespace %d", x.Identity, x.NS)
	}
	return model.Record{NS: x.NS, Key: x.Key, Kind: kind}, err
}

// touches says whether an effect changes a record.
func touches(x trace.Effect) bool { return x.Op == "replace" || x.Op == "splice" || x.Op == "delete" }

// apply does what an effect does, and says what is odd about it.
func (t table) apply(x trace.Effect) error {
	switch x.Op {
	case "setcluster":
		return nil
	case "setoffset":
		if strings.Trim(x.State, "0") != "" {
			return fmt.Errorf("moves the calendar by %s, and the checkers take cluster time for the date", x.State)
		}
		return nil
	case "clearall":
		clear(t)
		return nil
	case "clear":
		for r := range t {
			if r.NS == x.NS {
				delete(t, r)
			}
		}
		return nil
	}
	r, err := recordOf(x)
	if err != nil {
		return fmt.Errorf("changes %w, which no command of the history makes", err)
	}
	state, err := hex.DecodeString(x.State)
	if err != nil {
		return fmt.Errorf("writes the state %q", x.State)
	}
	switch x.Op {
	case "delete":
		delete(t, r)
		return nil
	case "replace":
	case "splice":
		old := t[r].bytes
		if x.Drop < 0 || x.Cut < 0 || x.Drop+x.Cut > len(old) {
			return fmt.Errorf("drops %d and cuts %d bytes of a state of %d", x.Drop, x.Cut, len(old))
		}
		state = append(slices.Clone(old[x.Drop:len(old)-x.Cut]), state...)
	default:
		return fmt.Errorf("has the effect %q, which no command of the history makes", x.Op)
	}
	w := held{bytes: state, expiry: x.Expiry}
	if r.Kind != model.IDs {
		if w.state, err = r.Kind.Decode(state, x.Expiry); err != nil {
			err = fmt.Errorf("writes a state of identity %q: %w", x.Identity, err)
		}
	}
	t[r] = w
	return err
}

// cleared are the records that a clear effect takes away.
func (t table) cleared(x trace.Effect) (all []model.Record) {
	for r := range t {
		if x.Op == "clearall" || x.Op == "clear" && r.NS == x.NS {
			all = append(all, r)
		}
	}
	return all
}

// version is a record's state from an index on.
type version struct {
	entry *entry // that made it; nil: the record has never been written
	state model.State
}

// versions are the states of all records over the lineage. They are made once.
type versions struct {
	of    map[model.Record][]version
	kinds kinds
}

func (e *evidence) versions() versions {
	if e.past != nil {
		return *e.past
	}
	all := versions{map[model.Record][]version{}, kinds{}}
	t := table{}
	for _, x := range e.lineage {
		var changed []model.Record
		for _, f := range x.Effects {
			changed = append(changed, t.cleared(f)...)
			if r, err := recordOf(f); touches(f) && err == nil {
				changed = append(changed, r)
				all.kinds.note(r)
			}
			t.apply(f) // what is odd is the witness's to say
		}
		for _, r := range changed {
			v := version{x, t[r].state}
			if old := all.of[r]; len(old) > 0 && old[len(old)-1].entry == x {
				old[len(old)-1] = v
				continue
			}
			all.of[r] = append(all.of[r], v)
		}
	}
	e.past = &all
	return all
}

// during are the versions that hold at some index from..upto, oldest first.
func during(all []version, from, upto uint64) []version {
	first, _ := slices.BinarySearchFunc(all, from, func(v version, i uint64) int {
		if v.entry.Index <= i {
			return -1
		}
		return 1
	})
	var out []version
	if first == 0 {
		out = append(out, version{})
	} else {
		out = append(out, all[first-1])
	}
	for _, v := range all[first:] {
		if v.entry.Index > upto {
			break
		}
		out = append(out, v)
	}
	return out
}
