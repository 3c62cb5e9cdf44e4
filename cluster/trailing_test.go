package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// What is kept for a follower must end: when it has caught up, when nobody waits for
// it any more, and before it fills the disk.
func TestLogIsHeldBackOnlyWhileAFollowerNeedsIt(t *testing.T) {
	const term, last, want = 7, 50_000, minTrailing
	for _, tc := range []struct {
		name    string
		sending bool
		match   uint64        // what the follower has acknowledged
		silent  time.Duration // since its newest answer
		written uint64        // bytes of log since the sending began
		diskLow bool
		from    uint64 // index of the snapshot
		held    bool
	}{
		{name: "it is being sent a snapshot", sending: true, from: 10_000, held: true},
		{name: "it is being sent one, which takes long", sending: true, silent: time.Hour, from: 10_000, held: true},
		{name: "it goes on from it", match: 10_500, from: 10_000, held: true},
		{name: "it has caught up", match: last - want, from: 10_000},
		{name: "it had more than that before the snapshot, of another log", match: 9_000, from: 10_000, held: true},
		{name: "it does not answer", match: 10_500, silent: holdQuiet + time.Second, from: 10_000},
		{name: "it never answered", silent: holdQuiet + time.Second, from: 10_000},
		{name: "too much was written", sending: true, written: holdBytes + 1, from: 10_000},
		{name: "the disk fills up", sending: true, diskLow: true, from: 10_000},
	} {
		clock := &fixedClock{boot: int64(time.Hour * 2)}
		n := &Node{clock: clock, logs: &logStore{}, trans: &transport{}}
		n.trans.node = n
		const id = raft.ServerID("n2-x")
		ended := n.holdLog(id, tc.from)
		at := clock.boot
		if clock.boot += int64(tc.silent); !tc.sending {
			now := clock.boot
			clock.boot = at
			ended()
			clock.boot = now
		}
		if tc.match > 0 {
			n.acks.note(id, term, peerAck{sent: at, heard: at, match: tc.match}, raft.Configuration{})
		}
		n.logs.written.Add(tc.written)
		n.diskLow.Store(tc.diskLow)
		count := n.heldBack(term, last, want)
		if (count > 0) != tc.held {
			t.Errorf("%s: %d entries are held back", tc.name, count)
		}
		if tc.held && last+want > tc.from+count { // though want more are appended until the next look
			t.Errorf("%s: the newest %d stay, which do not reach back to %d", tc.name, count, tc.from)
		}
		if !tc.held && len(n.trans.holds.of) > 0 {
			t.Errorf("%s: it is remembered", tc.name)
		}
	}
}
