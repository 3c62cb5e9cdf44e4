package cluster

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"limitd/snapshot"
)

// A receipt says that cluster time was at least At when this machine's boot
// clock read Boot. It is noted when an entry of the leader that is reaches the log
// store, so it is late by a network delay and never early. A node that comes to lead
// goes on from its newest receipt: whatever the wall clocks say, a failover loses a
// delay and never gains time. An entry of a leader that was is no receipt: after a
// power cut of all machines one of them may get, from the first leader, an entry from
// before.
//
// The term is the entry's. While the leader of that term leads, the receipt is not
// ahead of its clock either; a later one may have got the entry later, or never.
type receipt struct {
	at, boot int64
	term     uint64 // 0: not known
}

// receipts holds the newest one.
type receipts struct {
	clock  Clock
	newest atomic.Pointer[receipt]
}

// note takes down that an entry with time at has arrived. One that arrives late,
// after newer ones, says less than what is known. But one of a newer leader counts
// even if it is earlier: what the leader before it wrote may never be committed, and
// its clock may have been wrong.
func (r *receipts) note(at int64, term uint64) {
	if old := r.newest.Load(); old != nil && old.at > at && old.term >= term {
		return
	}
	r.newest.Store(&receipt{at, r.clock.Boot(), term})
}

// estimate is the cluster time that the newest receipt vouches for at boot.
func (r *receipts) estimate(boot int64) (int64, bool) {
	rc := r.newest.Load()
	if rc == nil {
		return 0, false
	}
	return rc.at + max(boot-rc.boot, 0), true
}

// restore takes over what the snapshot file kept, if the machine has not been
// rebooted since: only then do both readings belong to one clock.
func (r *receipts) restore(s snapshot.Receipt) {
	if s.BootID == "" || s.BootID != r.clock.BootID() || s.Boot > r.clock.Boot() {
		return
	}
	r.newest.Store(&receipt{at: s.At, boot: s.Boot})
}

// saved is what the snapshot file keeps.
func (r *receipts) saved() (snapshot.Receipt, bool) {
	rc := r.newest.Load()
	if rc == nil || r.clock.BootID() == "" {
		return snapshot.Receipt{}, false
	}
	return snapshot.Receipt{At: rc.at, Boot: rc.boot, BootID: r.clock.BootID()}, true
}

// receiptEvery is about how old the receipt on disk gets. What goes by after it
// is counted by this machine's clock alone, which may drift.
const receiptEvery = time.Minute

// keepReceipts puts the first receipt of a boot on disk at once, and a newer one
// now and then, so that a process that was killed finds one though no snapshot was
// due. Without one, cluster time would go on from the wall clocks though no
// machine was rebooted. It costs a synced transaction of one row each.
func (n *Node) keepReceipts() {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	failing := false
	for {
		select {
		case <-n.stopping:
			return
		case <-t.C:
		}
		err := n.keepReceipt()
		if err != nil && !failing {
			n.log.Warn("cannot keep the newest receipt; trying again every second", "error", err)
		}
		failing = err != nil
	}
}

// keepReceipt puts the newest receipt on disk if the one there is old.
func (n *Node) keepReceipt() error {
	newest, ok := n.receipts.saved()
	if !ok {
		return nil
	}
	kept, ok := n.snapshots().Receipt()
	if ok && kept.BootID == newest.BootID && newest.Boot-kept.Boot < int64(receiptEvery) {
		return nil
	}
	return n.snapshots().SaveReceipt(newest)
}

// testimony is a voter's answer to a new leader that has no receipt: the cluster
// time that its newest receipt vouches for, and its wall clock.
type testimony struct {
	known bool  // whether it has a receipt
	at    int64 // by its receipt
	wall  int64
}

const testimonyLen = 1 + 8 + 8

// testify is this node's own testimony.
func (r *receipts) testify() testimony {
	at, ok := r.estimate(r.clock.Boot())
	return testimony{known: ok, at: at, wall: r.clock.Wall()}
}

func (t testimony) encode() []byte {
	b := make([]byte, 1, testimonyLen)
	if t.known {
		b[0] = 1
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(t.at))
	return binary.LittleEndian.AppendUint64(b, uint64(t.wall))
}

func decodeTestimony(b []byte) (testimony, error) {
	if len(b) != testimonyLen || b[0] > 1 {
		return testimony{}, errors.New("damaged testimony of a voter")
	}
	return testimony{
		known: b[0] == 1,
		at:    int64(binary.LittleEndian.Uint64(b[1:])),
		wall:  int64(binary.LittleEndian.Uint64(b[9:])),
	}, nil
}

// answerReceipt handles kindReceipt.
func (n *Node) answerReceipt(_ []byte, _ time.Duration, reply func([]byte)) {
	reply(n.receipts.testify().encode())
}
