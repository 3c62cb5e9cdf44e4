package cluster

import "testing"

// Nobody sends it anything, so it has applied nothing and does not know the
// cluster's id.
func TestARemovedNodeThatIsStartedAgainSaysSo(t *testing.T) {
	t.Parallel()
	c := startTestCluster(t, 3)
	put(t, c.leader(), "before")
	gone := c.others(c.leader())[0]
	c.change(c.leader(), Change{Op: ChangeRemove, ID: gone.cfg.ID})
	gone.awaitRemoved()
	gone.Close()
	gone.mu.Lock()
	gone.out = nil
	gone.mu.Unlock()
	c.start(gone)
	gone.awaitRemoved()
}
