package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"limitd/bench/load"
)

// workload is a mix of calls, as limitd is asked and as the script is. Part of the calls
// ask for keys that are used up.
type workload struct {
	name   string
	denied float64         // part of the calls
	ours   func(*env) call // that has room
	theirs func(*env) call // nil: the script does not do this, and limitd is measured alone
	peeks  float64         // part of the calls, in place of others
}

// call appends one command for a key.
type call func(b []byte, key string) []byte

func callOf(before string, after string) call {
	head, tail := words(before), words(after)
	return func(b []byte, key string) []byte {
		b = fmt.Appendf(b, "*%d\r\n", len(head)+1+len(tail))
		for _, w := range head {
			b = bulk(b, w)
		}
		b = bulk(b, key)
		for _, w := range tail {
			b = bulk(b, w)
		}
		return b
	}
}

const (
	withRoom = "1000000 1000 3600 1"
	usedUp   = "0 1 86400 1"
)

func throttleCall(after string) func(*env) call {
	return func(*env) call { return callOf("CL.THROTTLE", after) }
}

func scriptCall(after string) func(*env) call {
	return func(e *env) call { return callOf(strings.Join(e.baseline.call(), " "), after) }
}

// takeAll is four limits of a key of its own each.
func takeAll(*env) call {
	const limit = "1000000/1h"
	return func(b []byte, key string) []byte {
		b = append(b, "*10\r\n"...)
		b = bulk(bulk(b, "RL.TAKEALL"), "4")
		for i := range 4 {
			b = bulk(bulk(b, fmt.Sprintf("%s:%d", key, i)), limit)
		}
		return b
	}
}

var workloads = []workload{
	{name: "all admitted, 100,000 keys", ours: throttleCall(withRoom), theirs: scriptCall(withRoom)},
	{name: "90 % denied", denied: 0.9, ours: throttleCall(withRoom), theirs: scriptCall(withRoom)},
	{name: "99.9 % denied", denied: 0.999, ours: throttleCall(withRoom), theirs: scriptCall(withRoom)},
	{name: "half of them peeks", peeks: 0.5, ours: throttleCall(withRoom), theirs: scriptCall(withRoom)},
	{name: "RL.TAKEALL of 4", ours: takeAll},
	{name: "RL.TAKE gcra", ours: takes("gcra:1000000/1h")},
	{name: "RL.TAKE token", ours: takes("token:1000/1s,burst=1000000")},
	{name: "RL.TAKE leaky", ours: takes("leaky:1000000/1s,queue=1000000")},
	{name: "RL.TAKE fixed", ours: takes("fixed:1000000/1h")},
	{name: "RL.TAKE sliding", ours: takes("sliding:1000000/1h")},
	{name: "RL.TAKE log", ours: takes("log:10000/1h")},
}

func takes(limit string) func(*env) call {
	return func(*env) call { return callOf("RL.TAKE", limit) }
}

const workloadKeys = 100_000

// next is the mix of a workload as one side is asked.
func (w workload) next(room, full, peek call) func([]byte, *rand.Rand) []byte {
	return func(b []byte, rnd *rand.Rand) []byte {
		switch at := rnd.Float64(); {
		case at < w.denied:
			return full(b, keyName(rnd.IntN(deniedAtLeader.keys)))
		case at < w.denied+w.peeks:
			return peek(b, workloadKey(rnd))
		}
		return room(b, workloadKey(rnd))
	}
}

// roomyKey is one that has room: not one of those that prepare uses up.
func roomyKey(i int) string { return keyName(1_000_000 + i) }

func workloadKey(rnd *rand.Rand) string { return roomyKey(rnd.IntN(workloadKeys)) }

// measure is a row that must reach nothing: what it is, compared with the script.
func (w workload) measure(ctx context.Context, e *env) (*result, error) {
	e.filled = false
	if err := deniedAtLeader.prepare(ctx, e); err != nil {
		return nil, err
	}
	peek := strings.TrimSuffix(withRoom, "1") + "0"
	plan := func(addr string, next func([]byte, *rand.Rand) []byte) load.Plan {
		p := e.plan(load.Plan{Addrs: []string{addr}, Conns: 200, Pipeline: 64, Next: next, Admits: func(int64) bool { return true }})
		p.Time /= 2
		return p
	}
	res := &result{name: w.name + ", pipelined", unit: "calls/s", ratio: w.theirs != nil, free: true, digits: -1}
	for range e.rounds {
		leader, err := e.cluster.AwaitReady(ctx)
		if err != nil {
			return nil, err
		}
		mine, err := drive(ctx, plan(leader.Addr, w.next(w.ours(e), throttleCall(usedUp)(e), throttleCall(peek)(e))), true)
		if err != nil {
			return nil, err
		}
		if w.theirs == nil {
			res.add(mine.Rate())
			continue
		}
		base, err := drive(ctx, plan(e.baseline.addr, w.next(w.theirs(e), scriptCall(usedUp)(e), scriptCall(peek)(e))), true)
		if err != nil {
			return nil, err
		}
		res.add(mine.Rate(), base.Rate())
	}
	return res, nil
}
