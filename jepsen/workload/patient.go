package workload

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"limitd/jepsen/history"
)

// owned are the classes of keys that a patient worker has for itself. Their emission
// intervals are whole milliseconds: 1000, 750 and 1500.
var owned = []class{
	{name: "own1", maxBurst: 0, count: 1, period: 1},
	{name: "own4", maxBurst: 3, count: 4, period: 3},
	{name: "own2", maxBurst: 0, count: 2, period: 3},
}

// interval is the emission interval, ms.
func (c *class) interval() int64 { return 1000 * c.period / c.count }

// ownedLimits are the limits of other keys that a patient worker has for itself, of each
// algorithm. What is asked of them waits for as many milliseconds as a denial names.
var ownedLimits = []string{"4/3s,burst=2", "token:3/2s", "leaky:2/1s,queue=1", "fixed:3/1s", "sliding:3/1s", "log:2/1s"}

// ownEpoch is after how many turns a patient worker goes on to new keys.
const ownEpoch = 200

// wait is a turn of a patient worker.
func (k *worker) wait(ctx context.Context) {
	if k.r.IntN(2) == 0 {
		k.waitLimited(ctx)
		return
	}
	k.waitThrottled(ctx)
}

// waitLimited charges a key under a limit expression, and if that is denied asks the same
// again after the wait that the denial names, which must do, or a little less.
func (k *worker) waitLimited(ctx context.Context) {
	i := k.r.IntN(len(ownedLimits))
	key := Key{NS: k.ns, limits: ownedLimits[i : i+1], alone: true, Name: fmt.Sprintf("mine%d:%d:%d", i, k.index, k.turn/ownEpoch)}
	cost := strconv.Itoa(1 + k.r.IntN(2))
	early := max(0, k.r.Int64N(6)-2) // ms; 0 half of the time

	take := func() call {
		return k.w.call(limitOperation("take-limit"), key, []string{"RL.TAKE", key.Name, ownedLimits[i], "COST", cost})
	}
	said := k.send([]call{take()})
	told := time.Now()
	if said == nil {
		return
	}
	ms, denied := retryAfterMS(said[0])
	if denied && sleep(ctx, told.Add(time.Duration(ms-early)*time.Millisecond)) {
		k.send([]call{take()})
	}
}

// waitThrottled charges a key that nobody else asks, and if
// that is denied, waits and asks the same again. It waits for as many seconds as the
// denial names, which must do; or, to the millisecond, for what the key's PTTL right
// behind the denial makes of it, which must do as well; or a little less, and may
// be denied.
func (k *worker) waitThrottled(ctx context.Context) {
	c := &owned[k.r.IntN(len(owned))]
	key := Key{NS: k.ns, class: c, Name: fmt.Sprintf("%s:%d:%d", c.name, k.index, k.turn/ownEpoch)}
	cost := 1 + k.r.Int64N(c.maxBurst+1)
	how, early := k.r.IntN(3), 1+k.r.Int64N(3)

	take := func() call { return k.w.call(operation("take"), key, key.throttle(cost)) }
	said := k.send([]call{take(), k.w.call(operation("ttl"), key, []string{"PTTL", key.Name})})
	told := time.Now()
	if said == nil {
		return
	}
	after, denied := retryAfter(said[0])
	if !denied {
		return
	}
	wait := time.Duration(after) * time.Second
	if ms, ok := said[1].reply.(int64); ok && said[1].Type == history.OK && how > 0 {
		ms += (cost - c.maxBurst - 1) * c.interval()
		if how == 2 {
			ms -= early
		}
		wait = time.Duration(ms) * time.Millisecond
	}
	if sleep(ctx, told.Add(wait)) {
		k.send([]call{take()})
	}
}

// retryAfterMS is the wait of an RL.TAKE that was denied, ms.
func retryAfterMS(o outcome) (int64, bool) {
	reply, _ := o.reply.([]any)
	if o.Type != history.OK || len(reply) != 7 || reply[0] != int64(0) {
		return 0, false
	}
	after, _ := reply[3].(int64)
	return after, after > 0
}

// retryAfter is the wait of a denial, s.
func retryAfter(o outcome) (int64, bool) {
	reply, _ := o.reply.([]any)
	if o.Type != history.OK || len(reply) != 5 || reply[0] != int64(1) {
		return 0, false
	}
	after, _ := reply[3].(int64)
	return after, after > 0
}
