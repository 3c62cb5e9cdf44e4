package resp

import (
	"errors"
	"fmt"

	"limitd/algo"
	"limitd/limiter"
)

// throttleUsage is redis-cell's usage line.
const throttleUsage = "ERR Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"

// limitMemo remembers the limit of the latest CL.THROTTLE: most connections ask
// for the same one again.
type limitMemo struct {
	maxBurst, count, period int64
	limit                   algo.Limit // zero: none
}

func (m *limitMemo) get(maxBurst, count, period int64) (algo.Limit, error) {
	if m.maxBurst == maxBurst && m.count == count && m.period == period && m.limit.Burst > 0 {
		return m.limit, nil
	}
	l, err := algo.NewThrottle(maxBurst, count, period)
	if err == nil {
		*m = limitMemo{maxBurst, count, period, l}
	}
	return l, err
}

// throttle is CL.THROTTLE key max_burst count period [quantity]. The checks come
// in redis-cell's order: how many arguments, each as an integer from left to
// right, what they mean. The key's length is checked first of the arguments.
func throttle(c *client, args [][]byte) error {
	if len(args) > 6 {
		return errors.New(throttleUsage[len("ERR "):])
	}
	if err := c.checkKeys(args[1:2]); err != nil {
		return err
	}
	maxBurst, ok := parseInt(args[2])
	if !ok {
		return notInteger("max_burst", args[2])
	}
	count, ok := parseInt(args[3])
	if !ok {
		return notInteger("count", args[3])
	}
	period, ok := parseInt(args[4])
	if !ok {
		return notInteger("period", args[4])
	}
	cost := int64(1)
	if len(args) == 6 {
		if cost, ok = parseInt(args[5]); !ok {
			return notInteger("quantity", args[5])
		}
	}
	limit, err := c.memo.get(maxBurst, count, period)
	if err != nil {
		return err
	}
	if err := limit.CheckCost(cost); err != nil {
		return err
	}
	call := c.call(verdict)
	call.Op, call.Key, call.Limit, call.Cost = limiter.Take, args[1], limit, cost
	return nil
}

func notInteger(arg string, b []byte) error {
	return fmt.Errorf("%s: Couldn't parse as integer: %s", arg, quoted(b))
}
