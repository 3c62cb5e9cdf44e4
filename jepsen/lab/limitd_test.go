package lab

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A cluster of the real thing lives on what the lab writes into configurations, also
// where proxies stand between its nodes; and a node that is cut off from its peers
// knows it.
func TestLimitdRunsInEveryNetwork(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "limitd")
	must(t, BuildWithClock(binary, "", "limitd/cmd/limitd", "", t.TempDir()))
	for _, kind := range networks {
		t.Run(kind.name, func(t *testing.T) {
			kind.o.Nodes, kind.o.Binary = 3, binary
			l := prepare(t, kind.o)
			for _, n := range l.Nodes() {
				must(t, n.Start())
			}
			admits := func(id string) bool {
				c, err := l.Network().Dial(id, RESPPort, patience/2)
				if err != nil {
					return false
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience / 2))
				fmt.Fprint(c, "CL.THROTTLE key 1000 1000 1\r\n")
				said, _ := bufio.NewReader(c).ReadString('\n')
				return strings.HasPrefix(said, "*5")
			}
			admit := func(ids ...string) {
				t.Helper()
				for _, id := range ids {
					eventually(t, id+" admits", func() bool { return admits(id) })
				}
			}
			admit("n1", "n2", "n3")
			must(t, l.Network().Cut(append(both("n1", "n2", PeerPort), both("n1", "n3", PeerPort)...)))
			eventually(t, "n1 is alone, and knows it", func() bool { return !admits("n1") })
			admit("n2", "n3")
			must(t, l.Network().Cut(nil))
			admit("n1", "n2", "n3")
			for _, n := range l.Nodes() {
				if code, err := n.Stop(10 * time.Second); code != 0 || err != nil {
					t.Errorf("%s ended with %d: %v", n.ID(), code, err)
				}
			}
		})
	}
}
