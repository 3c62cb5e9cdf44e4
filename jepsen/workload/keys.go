package workload

import (
	"fmt"
	"math/rand/v2"
)

// class is a kind of key.
type class struct {
	name                    string
	share                   int   // of 100
	keys                    int   // for each crowd; 0: each key is one worker's alone
	epoch                   int   // after so many turns its workers go on to new keys; 0: never
	maxBurst, count, period int64 // the limit
	heaviest                int64 // charge
	refunds, resets         bool
}

// classes of keys. Limits are such that about half of the charges are denied: hot and
// warm keys refill all the time, a budget hardly does, so each unit of it that is
// lost or invented shows, and one that nobody gives back is a counter.
var classes = []class{
	{name: "hot", share: 22, keys: 2, epoch: 2000, maxBurst: 19, count: 3, period: 1, heaviest: 21, refunds: true, resets: true},
	{name: "warm", share: 40, keys: 16, epoch: 2000, maxBurst: 5, count: 3, period: 5, heaviest: 7, refunds: true, resets: true},
	{name: "budget", share: 12, keys: 2, epoch: 400, maxBurst: 59, count: 1, period: 86400, heaviest: 20, refunds: true},
	{name: "counter", share: 6, keys: 1, epoch: 400, maxBurst: 59, count: 1, period: 86400, heaviest: 20},
	{name: "cold", share: 20, maxBurst: 2, count: 1, period: 60, heaviest: 4, refunds: true, resets: true},
}

// crowd is how many workers share keys: as many as may ask one key at a time, for the
// sake of a checker whose work doubles with each more.
const crowd = 8

// Key is a key and the limit under which it is charged.
type Key struct {
	NS    int // namespace
	Name  string
	class *class

	sibling string // of the same worker; empty: none

	limits []string // expressions; then it has no class
	more   []Key    // that may be named together with it
	alone  bool     // it is named by itself only
}

// keys draws one worker's keys.
type keys struct {
	worker, ns int
	cold       int // how many it has used
}

// draw picks a key for a turn. The workers of a crowd have about the same turn at the
// same time.
func (d *keys) draw(r *rand.Rand, turn int) Key {
	n := r.IntN(100)
	for i := range classes {
		if c := &classes[i]; n < c.share {
			return d.of(r, c, turn)
		} else {
			n -= c.share
		}
	}
	panic("workload: the shares of the classes of keys are less than 100")
}

func (d *keys) of(r *rand.Rand, c *class, turn int) Key {
	k := Key{NS: d.ns, class: c}
	if c.keys > 0 {
		k.Name = fmt.Sprintf("%s:%d:%d:%d", c.name, d.worker/crowd, r.IntN(c.keys), turn/c.epoch)
		return k
	}
	if d.cold == 0 || r.IntN(3) == 0 { // a key comes back a few times
		d.cold++
	}
	k.Name = fmt.Sprintf("%s:%d:%d", c.name, d.worker, d.cold)
	if d.cold > 1 {
		k.sibling = fmt.Sprintf("%s:%d:%d", c.name, d.worker, d.cold-1)
	}
	return k
}

// cold is the class of keys that are one worker's alone.
func cold() *class { return &classes[len(classes)-1] }
