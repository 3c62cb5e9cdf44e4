package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// limitClass is a kind of key that is limited by expressions, one or several.
type limitClass struct {
	name   string
	keys   int // for each crowd; 0: each worker has one of its own
	limits []string
	alone  bool // never named with others, nor under an ID: so that it can be judged by itself
}

// limited are the classes of such keys, of each algorithm. Limits are such that about
// half of what is asked passes, and their periods so short that they turn over all the
// time. Those of calendars turn over together, at [TurnOver].
var limited = []limitClass{
	{name: "rate", keys: 1, limits: []string{"12/2s,burst=9"}},
	{name: "token", keys: 1, limits: []string{"token:18/3s"}},
	{name: "queue", keys: 1, limits: []string{"leaky:6/1s,queue=7"}},
	{name: "fixed", keys: 1, limits: []string{"fixed:12/2s"}},
	{name: "sliding", keys: 1, limits: []string{"sliding:18/3s"}},
	{name: "log", keys: 1, limits: []string{"log:9/1500ms"}},
	{name: "solo", keys: 1, limits: []string{"sliding:8/2s"}, alone: true},
	{name: "lone", keys: 1, limits: []string{"log:4/1s"}, alone: true},
	{name: "date", keys: 1, limits: []string{"fixed:20/day,tz=Asia/Dhaka,hour=6", "fixed:30/week", "fixed:40/year"}},
	{name: "diary", keys: 1, limits: []string{"fixed:50/day,tz=America/New_York,hour=19"}, alone: true},
	{name: "plan", limits: []string{"log:3/1s", "fixed:5/3s", "20/1m,burst=8"}},
}

// TurnOver is the moment of cluster time at which the calendar windows turn over, of days,
// weeks and years alike: midnight in Greenwich, six in Dhaka, seven in the evening in New York.
var TurnOver = time.Date(2029, time.January, 1, 0, 0, 0, 0, time.UTC)

// pair is a limit of a key.
type pair struct{ key, limit string }

// past is a call that had an ID.
type past struct {
	op    *Operation
	key   Key
	cmd   []string
	id    string
	pairs []pair // that it named
}

// pastKept is how many calls a worker knows by their ID: some are forgotten by the nodes by
// then.
const pastKept = 40

// Limited are what the workload does with limit expressions.
var Limited = []Operation{
	{F: "take-limit", Share: 41, ID: 30, Make: func(r *rand.Rand, k Key) []string {
		return []string{"RL.TAKE", k.Name, k.limit(r), "COST", strconv.Itoa(1 + r.IntN(3))}
	}},
	{F: "takeall", Share: 26, ID: 30, On: func(k Key) bool { return len(k.more) > 0 }, Make: takeAll},
	{F: "peek-limit", Share: 6, Make: func(r *rand.Rand, k Key) []string {
		return []string{"RL.PEEK", k.Name, k.limit(r), "COST", strconv.Itoa(r.IntN(5))}
	}},
	{F: "refund-limit", Share: 5, Make: func(r *rand.Rand, k Key) []string {
		return []string{"RL.REFUND", k.Name, k.limit(r), strconv.Itoa(1 + r.IntN(2))}
	}},
	{F: "again", Share: 5, Past: func(_ *rand.Rand, p past) []string { return p.cmd }},
	{F: "refund-id", Share: 6, Past: func(r *rand.Rand, p past) []string {
		x := p.pairs[r.IntN(len(p.pairs))]
		return []string{"RL.REFUND", x.key, x.limit, strconv.Itoa(1 + r.IntN(3)), "ID", p.id}
	}},
	{F: "other-call", Share: 1, Past: func(_ *rand.Rand, p past) []string {
		return []string{"RL.TAKE", p.pairs[0].key, p.pairs[0].limit, "COST", "4", "ID", p.id}
	}},
	{F: "reset-limit", Share: 1, Make: func(_ *rand.Rand, k Key) []string { return []string{"DEL", k.Name} }},
	{F: "exists-limit", Share: 2, Make: func(_ *rand.Rand, k Key) []string { return []string{"EXISTS", k.Name} }},
	{F: "ttl-limit", Share: 3, Make: func(_ *rand.Rand, k Key) []string { return []string{"PTTL", k.Name} }},
	{F: "list-limit", Share: 3, Make: func(_ *rand.Rand, k Key) []string { return []string{"RL.LIST", k.Name} }},
	{F: "type-limit", Share: 1, Make: func(_ *rand.Rand, k Key) []string { return []string{"TYPE", k.Name} }},
}

// limit draws one of the key's.
func (k Key) limit(r *rand.Rand) string { return k.limits[r.IntN(len(k.limits))] }

// takeAll names two to four limits: one of the key, and some of others.
func takeAll(r *rand.Rand, k Key) []string {
	pairs := []pair{{k.Name, k.limit(r)}}
	for _, i := range r.Perm(len(k.more))[:min(len(k.more), 1+r.IntN(3))] {
		pairs = append(pairs, pair{k.more[i].Name, k.more[i].limit(r)})
	}
	cmd := []string{"RL.TAKEALL", strconv.Itoa(len(pairs))}
	costs := []string{"COSTS"}
	for _, p := range pairs {
		cmd, costs = append(cmd, p.key, p.limit), append(costs, strconv.Itoa(1+r.IntN(8)/7))
	}
	if cmd = append(cmd, costs...); r.IntN(12) == 0 {
		cmd = append(cmd, "PEEK")
	}
	return cmd
}

// pairsOf are the limits that a command names.
func pairsOf(cmd []string) (all []pair) {
	n, rest := 1, cmd[1:]
	if cmd[0] == "RL.TAKEALL" {
		n, _ = strconv.Atoi(cmd[1])
		rest = cmd[2:]
	}
	for i := range n {
		all = append(all, pair{rest[2*i], rest[2*i+1]})
	}
	return all
}

// look asks what is left of all limits of a key.
func (k Key) look() (*Operation, []string) {
	if len(k.limits) == 0 {
		return operation("peek"), k.throttle(0)
	}
	cmd := []string{"RL.TAKEALL", strconv.Itoa(len(k.limits))}
	for _, l := range k.limits {
		cmd = append(cmd, k.Name, l)
	}
	return limitOperation("takeall"), append(cmd, "PEEK")
}

// limitKey draws a key with limits, and those that may be named together with it.
func (d *keys) limitKey(r *rand.Rand) Key {
	k := d.ofClass(&limited[r.IntN(len(limited))], r)
	for i := range limited {
		if c := &limited[i]; !k.alone && !c.alone && c.limits[0] != k.limits[0] {
			k.more = append(k.more, d.ofClass(c, r))
		}
	}
	return k
}

func (d *keys) ofClass(c *limitClass, r *rand.Rand) Key {
	k := Key{NS: d.ns, limits: c.limits, Name: fmt.Sprintf("%s:%d", c.name, d.worker), alone: c.alone}
	if c.keys > 0 {
		k.Name = fmt.Sprintf("%s:%d:%d", c.name, d.worker/crowd, r.IntN(c.keys))
	}
	return k
}

// drawLimited draws a call under limits, or a pipeline of them.
func (k *worker) drawLimited() []call {
	n := 1
	if k.r.IntN(10) == 0 {
		n = 2 + k.r.IntN(pipelined-1)
	}
	var calls []call
	drawn := map[string]bool{}
	for range n {
		key := k.keys.limitKey(k.r)
		for drawn[key.Name] {
			key = k.keys.limitKey(k.r)
		}
		drawn[key.Name] = true
		op := drawOperation(Limited, k.r, key)
		var c call
		if op.Past != nil && len(k.past) > 0 && n == 1 {
			p := k.past[k.r.IntN(len(k.past))]
			c = k.w.call(op, p.key, op.Past(k.r, p))
			if c.id = p.id; c.cmd[0] != "RL.TAKEALL" {
				c.key.Name = c.cmd[1]
			}
		} else {
			if op.Past != nil {
				op = limitOperation("take-limit")
			}
			c = k.w.call(op, key, op.Make(k.r, key))
			if k.r.IntN(100) < op.ID && !key.alone {
				c = k.named(c)
			}
		}
		calls = append(calls, c)
	}
	return calls
}

// named gives a call that charges something an ID.
func (k *worker) named(c call) call {
	if c.cmd[len(c.cmd)-1] == "PEEK" {
		return c
	}
	k.ids++
	c.id = fmt.Sprintf("%d-%d", k.index, k.ids)
	c.cmd = append(c.cmd, "ID", c.id)
	k.past = append(k.past, past{c.op, c.key, c.cmd, c.id, pairsOf(c.cmd)})
	if len(k.past) > pastKept {
		k.past = k.past[1:]
	}
	return c
}
