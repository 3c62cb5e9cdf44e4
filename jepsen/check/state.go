package check

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// throttleIdentity is the identity of the record that CL.THROTTLE keeps on a key.
const throttleIdentity = "01"

// table is the state that effects make: per key its tat.
type table map[key]int64

// apply does what an effect does, and says what is odd about it.
func (t table) apply(x trace.Effect) error {
	k := key{x.NS, x.Key}
	switch x.Op {
	case "setcluster", "setoffset":
	case "clearall":
		clear(t)
	case "clear":
		for k := range t {
			if k.ns == x.NS {
				delete(t, k)
			}
		}
	case "delete":
		if x.Identity != throttleIdentity {
			return fmt.Errorf("deletes a record of identity %q, which no command of the history makes", x.Identity)
		}
		delete(t, k)
	case "replace":
		state, err := hex.DecodeString(x.State)
		if err != nil || len(state) != 8 || x.Identity != throttleIdentity {
			return fmt.Errorf("writes the state %q of identity %q, which is no tat", x.State, x.Identity)
		}
		tat := binary.LittleEndian.Uint64(state)
		if tat > math.MaxInt64 || int64(tat) != x.Expiry {
			return fmt.Errorf("writes the tat %d with the expiry %d", tat, x.Expiry)
		}
		t[k] = int64(tat)
	default:
		return fmt.Errorf("has the effect %q, which no command of the history makes", x.Op)
	}
	return nil
}

// state of a key.
func (t table) state(k key) model.State {
	if tat, ok := t[k]; ok {
		return model.At(tat)
	}
	return model.State{}
}

// version is a key's state from an index on.
type version struct {
	entry *entry // that made it; nil: the key has never been written
	state model.State
}

// versions are the states of all keys over the lineage.
func (e *evidence) versions() map[key][]version {
	all := map[key][]version{}
	t := table{}
	for _, x := range e.lineage {
		var changed []key
		for _, f := range x.Effects {
			if f.Op == "clear" || f.Op == "clearall" {
				for k := range t {
					if f.Op == "clearall" || k.ns == f.NS {
						changed = append(changed, k)
					}
				}
			} else if f.Op == "replace" || f.Op == "delete" {
				changed = append(changed, key{f.NS, f.Key})
			}
			t.apply(f) // what is odd is the witness's to say
		}
		for _, k := range changed {
			v := version{x, t.state(k)}
			if old := all[k]; len(old) > 0 && old[len(old)-1].entry == x {
				old[len(old)-1] = v
				continue
			}
			all[k] = append(all[k], v)
		}
	}
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
