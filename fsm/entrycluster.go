package fsm

import "encoding/binary"

// EntryCluster returns the id and the generation of the cluster that an entry gives
// it, ok: it does. Whether the entry took effect is not known from it: of the
// entries that do so the first one counts.
func EntryCluster(data []byte) (id [16]byte, generation uint64, ok bool) {
	e, err := parseEntry(data)
	if err != nil || !e.settings {
		return id, 0, false
	}
	d := e.effects(0)
	for range e.count {
		d.mustNext()
		if d.effect.Op == OpSetCluster {
			copy(id[:], d.effect.State)
			return id, binary.LittleEndian.Uint64(d.effect.State[16:]), true
		}
	}
	return id, 0, false
}
