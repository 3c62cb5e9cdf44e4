package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// victims are who a disk fails under, by role.
func (c *cluster) victims() map[string]func() *node {
	return map[string]func() *node{
		"leader":   c.leader,
		"follower": func() *node { return c.others(c.leader())[0] },
	}
}

// TestOneFailedSyncStopsTheNode: a second sync would succeed, and what the first one
// failed to write would be lost. The others go on, and the node is back when it is
// started again.
func TestOneFailedSyncStopsTheNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for _, file := range []string{walDir, snapshotFile} {
		for who, pick := range c.victims() {
			t.Run(file+" of the "+who, func(t *testing.T) {
				victim := pick()
				tr := startTraffic(t, 2, keysOf(file+":"+who), c.others(victim)...)
				written := file
				if file == walDir {
					written = victim.log(t)
				}
				inject(t, victim, written, "fdatasync:error=EIO:when=1")
				if file == snapshotFile {
					victim.r.Do(context.Background(), "RL.SNAPSHOT", "SAVE") // its answer may get lost with the node
				}
				stopsItself(t, victim, file, "input/output error", "dmesg")
				tr.flows("without the node whose disk failed")
				c.start(victim)
				c.awaitDecides(victim)
				tr.flows("with it again")
				tr.check(victim)
				c.awaitSameHash(c.nodes...)
				soonReplaced(t, tr)
			})
		}
	}
}

// TestLogWithoutRoomStopsTheNode: between two looks at the free space a disk can
// fill up to the last byte.
func TestLogWithoutRoomStopsTheNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for who, pick := range c.victims() {
		t.Run(who, func(t *testing.T) {
			victim := pick()
			tr := startTraffic(t, 2, keysOf(who), c.others(victim)...)
			inject(t, victim, victim.log(t), "pwrite64:error=ENOSPC")
			stopsItself(t, victim, walDir, "no space left on device", "free space there")
			tr.flows("without the node whose disk is full")
			c.start(victim)
			c.awaitDecides(victim)
			tr.check(victim)
			c.awaitSameHash(c.nodes...)
			soonReplaced(t, tr)
		})
	}
	t.Run("all", func(t *testing.T) {
		tr := startTraffic(t, 2, keysOf("all"), c.nodes...)
		var undo []func()
		for _, nd := range c.nodes {
			undo = append(undo, inject(t, nd, nd.log(t), "pwrite64:error=ENOSPC"))
		}
		stopped := func() (stopped []*node) {
			for _, nd := range c.nodes {
				if !nd.running() {
					stopped = append(stopped, nd)
				}
			}
			return stopped
		}
		eventually(t, 20*time.Second, "the majority to stop", func() bool { return len(stopped()) >= 2 }) // the last one has nothing to write
		for _, nd := range stopped() {
			stopsItself(t, nd, walDir, "no space left on device", "free space there")
		}
		for _, f := range undo {
			f()
		}
		for _, nd := range c.nodes { // the last one may be on its way out
			if nd.running() && strings.Contains(nd.out.String(), "the node stops") {
				stopsItself(t, nd, walDir, "no space left on device", "free space there")
			}
			if nd.running() {
				nd.kill()
			}
		}
		c.startAll()
		tr.flows("when there is room again")
		tr.check(c.nodes[0])
		c.awaitSameHash(c.nodes...)
	})
}

// TestSnapshotWithoutRoomStopsNothing: a snapshot can wait until there is room.
func TestSnapshotWithoutRoomStopsNothing(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for who, pick := range c.victims() {
		t.Run(who, func(t *testing.T) {
			victim := pick()
			tr := startTraffic(t, 2, keysOf(who), c.nodes...)
			undo := inject(t, victim, snapshotFile, "pwrite64:error=ENOSPC")
			save := func() error { return victim.r.Do(context.Background(), "RL.SNAPSHOT", "SAVE").Err() }
			if err := save(); err == nil || !strings.Contains(err.Error(), "snapshot.db: no space left on device") {
				t.Errorf("a snapshot on a full disk: %v", err)
			}
			tr.flows("while the snapshot finds no room")
			undo()
			if err := save(); err != nil {
				t.Errorf("a snapshot when there is room again: %v", err)
			}
			tr.check(victim)
			c.awaitSameHash(c.nodes...)
			if !victim.running() {
				t.Errorf("%s has stopped: %s", victim.id, tail(victim.out.String(), 3))
			}
		})
	}
}
