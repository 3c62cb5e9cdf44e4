package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// networks are the kinds of network, all of which must cut alike.
var networks = []struct {
	name string
	o    Options
}{
	{"bridge", Options{Nodes: 5}},
	{"switch", Options{Nodes: 5, Slow: true}},
	{"proxies", Options{Nodes: 5, Proxy: true}},
}

// both cuts two endpoints off from each other.
func both(a, b string, port Port) []Cut { return []Cut{{a, b, port}, {b, a, port}} }

func TestWhoReachesWhom(t *testing.T) {
	ring := []Cut{}
	for i := range 5 { // each sees its two neighbours, and another majority than they
		ring = append(ring, both(fmt.Sprint("n", i+1), fmt.Sprint("n", (i+2)%5+1), AnyPort)...)
	}
	var oneBridge []Cut // n3 sees all
	for _, a := range []string{"n1", "n2"} {
		for _, b := range []string{"n4", "n5"} {
			oneBridge = append(oneBridge, both(a, b, AnyPort)...)
		}
	}
	apart := func(pairs ...string) []string { return pairs }
	for _, kind := range networks {
		t.Run(kind.name, func(t *testing.T) {
			l := open(t, kind.o)
			for _, tt := range []struct {
				name  string
				cuts  []Cut
				apart []string // all others reach each other
			}{
				{"none", nil, nil},
				{"ring", ring, apart("n1 n3", "n2 n4", "n3 n5", "n1 n4", "n2 n5")},
				{"bridge", oneBridge, apart("n1 n4", "n1 n5", "n2 n4", "n2 n5")},
				{"of every kind", slices.Concat(
					[]Cut{{From: "n2", To: "n1"}}, // a connection needs both ways
					both("n1", "n3", PeerPort), both("n3", "n4", RESPPort),
					both(Client, "n5", RESPPort), both(Client, "n4", PeerPort)), apart("n1 n2", "n1 n3", "client n5")},
				{"all healed", nil, nil},
			} {
				must(t, l.Network().Cut(tt.cuts))
				if got := dialAll(t, l); !slices.Equal(got, sorted(tt.apart)) {
					t.Errorf("%s: these do not reach each other: %q, want %q", tt.name, got, tt.apart)
				}
				if got := unhealthy(l); !slices.Equal(got, sorted(tt.apart)) {
					t.Errorf("%s: these are said not to reach each other: %q, want %q", tt.name, got, tt.apart)
				}
			}
		})
	}
}

// dialAll tries all connections at once: nodes to peers, and the client to each node.
// A node that no client reaches is not asked.
func dialAll(t *testing.T, l Lab) (apart []string) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	miss := func(pair string) {
		mu.Lock()
		defer mu.Unlock()
		apart = append(apart, pair)
	}
	for i, n := range l.Nodes() {
		all.Go(func() {
			if _, err := ask(l, n.ID(), "?"); err != nil {
				miss("client " + n.ID())
			}
		})
		for _, o := range l.Nodes()[i+1:] {
			all.Go(func() {
				if said, err := askWithin(l, n.ID(), "dial "+o.Peer(), patience); err == nil && said != "true" {
					miss(n.ID() + " " + o.ID())
				}
			})
		}
	}
	all.Wait()
	return sorted(apart)
}

func unhealthy(l Lab) (apart []string) {
	all := l.Health()
	for i, n := range l.Nodes() {
		if !all[n.ID()].Client {
			apart = append(apart, "client "+n.ID())
		}
		for _, o := range l.Nodes()[i+1:] {
			if !slices.Contains(all[n.ID()].Peers, o.ID()) || !slices.Contains(all[o.ID()].Peers, n.ID()) {
				apart = append(apart, n.ID()+" "+o.ID())
			}
		}
	}
	return sorted(apart)
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// What is said arrives, and only the answer does not, or the other way round; and all
// of it comes when the cut is healed.
func TestACutIsOfOneDirection(t *testing.T) {
	for _, kind := range networks {
		t.Run(kind.name, func(t *testing.T) {
			kind.o.Nodes = 1
			l := open(t, kind.o)
			for _, tt := range []struct {
				cut     Cut
				arrives bool
			}{{Cut{"n1", Client, RESPPort}, true}, {Cut{Client, "n1", RESPPort}, false}} {
				file := fmt.Sprintf("%s-%s-%s", tt.cut.From, tt.cut.To, tt.cut.Port)
				arrived := func() bool {
					_, err := os.Stat(filepath.Join(l.Node("n1").Data(), file))
					return err == nil
				}
				c, err := l.Network().Dial("n1", RESPPort, patience)
				must(t, err)
				defer c.Close()
				must(t, l.Network().Cut([]Cut{tt.cut}))
				if said, err := exchange(c, "write "+file, impatience); err == nil {
					t.Errorf("%v: answered %q", tt.cut, said)
				}
				if arrived() != tt.arrives {
					t.Errorf("%v: what was said has arrived: %v", tt.cut, arrived())
				}
				must(t, l.Network().Cut(nil))
				c.SetDeadline(time.Now().Add(patience)) // TCP sends again, ever more seldom
				var b [5]byte
				if _, err := io.ReadFull(c, b[:]); err != nil || string(b[:]) != "true\n" || !arrived() {
					t.Errorf("%v, healed: answer %q, arrived %v: %v", tt.cut, b, arrived(), err)
				}
			}
		})
	}
}

func TestSeveredConnectionsAreReset(t *testing.T) {
	for _, kind := range networks {
		t.Run(kind.name, func(t *testing.T) {
			kind.o.Nodes = 2
			l := open(t, kind.o)
			dial := func(id string) io.Reader {
				c, err := l.Network().Dial(id, PeerPort, patience)
				must(t, err)
				t.Cleanup(func() { c.Close() })
				if _, err := exchange(c, "?", patience); err != nil {
					t.Fatal(err)
				}
				c.SetDeadline(time.Now().Add(impatience))
				return c
			}
			severed, kept := dial("n1"), dial("n2")
			must(t, l.Network().Sever("n1", Client))
			if _, err := severed.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
				t.Errorf("a severed connection: %v", err)
			}
			if _, err := kept.Read(make([]byte, 1)); !os.IsTimeout(err) {
				t.Errorf("another node's connection: %v", err)
			}
			if answer(t, l, "n1", "?") != "?" {
				t.Error("no new connection after it")
			}
		})
	}
}

func TestLinksOfNobodyAreRefused(t *testing.T) {
	for _, kind := range networks {
		t.Run(kind.name, func(t *testing.T) {
			kind.o.Nodes = 1
			l := open(t, kind.o)
			for what, err := range map[string]error{
				`"n9"`:  l.Network().Cut([]Cut{{"n1", "n9", AnyPort}}),
				`"n8"`:  l.Network().Sever("n8", "n1"),
				`"udp"`: l.Network().Cut([]Cut{{"n1", Client, "udp"}}),
			} {
				if err == nil || !strings.Contains(err.Error(), what) {
					t.Errorf("error %v, want one that names %s", err, what)
				}
			}
		})
	}
}
