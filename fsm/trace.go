package fsm

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/hashicorp/raft"

	"limitd/trace"
)

var opNames = map[Op]string{
	OpReplace: "replace", OpSplice: "splice", OpDelete: "delete", OpClear: "clear", OpClearAll: "clearall",
	OpSetCluster: "setcluster", OpSetOffset: "setoffset",
}

// traceApplied notes an entry that was applied, or was void. The state is the one
// after it. A machine that has halted notes nothing.
func (f *FSM) traceApplied(l *raft.Log, o Outcome) {
	if o == Unknown {
		return
	}
	e, err := parseEntry(l.Data)
	if err != nil {
		return // cannot be: it was applied
	}
	row := f.traceState(trace.Applied)
	row.Term, row.Base, row.At, row.Digest, row.Outcome = l.Term, e.Base, e.At, trace.Digest(l.Data), o.String()
	for d := e.effects(0); len(d.rest) > 0; {
		d.mustNext()
		x := &d.effect
		out := trace.Effect{Op: opNames[x.Op], NS: x.NS, Key: trace.Key(x.Key), Identity: hex.EncodeToString(x.Ident), Drop: x.Drop, Cut: x.Cut, Expiry: x.Expiry}
		state := x.State
		if d.same {
			state = binary.LittleEndian.AppendUint64(nil, uint64(x.Expiry))
		}
		out.State = hex.EncodeToString(state)
		row.Effects = append(row.Effects, out)
	}
	f.trace(row)
}

// traceRestored notes that a snapshot has replaced the state.
func (f *FSM) traceRestored() {
	row := f.traceState(trace.Restored)
	row.ClusterID = fmt.Sprintf("%x", f.State().ClusterID)
	f.trace(row)
}

func (f *FSM) traceState(kind trace.Kind) trace.Row {
	s := f.State()
	return trace.Row{Kind: kind, Index: s.Applied, Last: s.Last, T: s.T, Chain: trace.Hash(s.Chain)}
}
