package fsm

import "testing"

func TestEntryThatGivesTheClusterItsID(t *testing.T) {
	state := make([]byte, 24)
	state[0], state[16] = 7, 1
	turn := Turn{Term: 2, At: 5}
	if id, g, ok := EntryCluster(AppendEntry(nil, turn, []Effect{{Op: OpClearAll}, {Op: OpSetCluster, State: state}})); !ok || g != 1 || id != [16]byte{7} {
		t.Errorf("%x, generation %d, %v", id, g, ok)
	}
	for name, data := range map[string][]byte{
		"nothing":         nil,
		"an empty batch":  AppendEntry(nil, turn, nil),
		"another setting": AppendEntry(nil, turn, []Effect{{Op: OpSetOffset, State: state[:8]}}),
		"damaged":         append(AppendEntry(nil, turn, []Effect{{Op: OpSetCluster, State: state}}), 0),
	} {
		if id, _, ok := EntryCluster(data); ok {
			t.Errorf("%s gives the id %x", name, id)
		}
	}
}
