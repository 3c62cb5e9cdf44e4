package workload

import (
	"context"
	"fmt"
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

// ownEpoch is after how many turns a patient worker goes on to new keys.
const ownEpoch = 200

// wait is a turn of a patient worker: it charges a key that nobody else asks, and if
// that is denied, waits and asks the same again. It waits for as many seconds as the
// denial names, which must do; or, to the millisecond, for what the key's PTTL right
// behind the denial makes of it, which must do as well; or a little less, and may
// be denied.
func (k *worker) wait(ctx context.Context) {
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

// retryAfter is the wait of a denial, s.
func retryAfter(o outcome) (int64, bool) {
	reply, _ := o.reply.([]any)
	if o.Type != history.OK || len(reply) != 5 || reply[0] != int64(1) {
		return 0, false
	}
	after, _ := reply[3].(int64)
	return after, after > 0
}
