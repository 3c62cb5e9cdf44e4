package resp

import (
	"errors"
	"fmt"

	"limitd/algo"
	"limitd/limiter"
)

// The RL commands that decide under limit expressions.

// takeOptions are what may stand behind the limits of RL.TAKE, RL.PEEK and RL.TAKEALL.
type takeOptions struct {
	peek  bool
	cost  int64
	trace bool
	costs [][]byte // COSTS: one for each limit; nil: cost for all
	id    []byte   // empty: none
}

// options reads them, each at most once and in any order; n is the number of limits, 0:
// there is one and no COSTS.
func (o *takeOptions) read(args [][]byte, n int) error {
	o.cost = 1
	var cost, peek bool
	for len(args) > 0 {
		name := args[0]
		switch {
		case is(name, "cost") && !cost:
			if len(args) < 2 {
				return errors.New("COST needs a value: the units to charge, 0 or more")
			}
			var err error
			if o.cost, err = costOf("COST", args[1]); err != nil {
				return err
			}
			cost, args = true, args[2:]
		case is(name, "costs") && !cost && n > 0:
			if len(args) < 1+n {
				return fmt.Errorf("COSTS needs a value for each of the %d limits", n)
			}
			o.costs, cost, args = args[1:1+n], true, args[1+n:]
		case is(name, "peek") && !peek:
			o.peek, peek, args = true, true, args[1:]
		case is(name, "id") && o.id == nil:
			if len(args) < 2 {
				return errors.New("ID needs a value: the token of the call")
			}
			if o.id = args[1]; len(o.id) == 0 || len(o.id) > limiter.MaxID {
				return fmt.Errorf("ID must have 1 to %d bytes, not %d", limiter.MaxID, len(o.id))
			}
			args = args[2:]
		case is(name, "trace") && !o.trace:
			o.trace, args = true, args[1:]
		case is(name, "cost"), is(name, "costs"), is(name, "peek"), is(name, "id"), is(name, "trace"):
			return fmt.Errorf("%s does not go here: COST or COSTS, PEEK, ID and TRACE, each at most once; COSTS only with RL.TAKEALL", quoted(name))
		default:
			options := "COST n, PEEK, ID token, TRACE"
			if n > 0 {
				options = fmt.Sprintf("COST n or COSTS n1 ... n%d, PEEK, ID token, TRACE", n)
			}
			return fmt.Errorf("unknown option %s, use %s", quoted(name), options)
		}
	}
	if o.peek && o.id != nil {
		return errors.New("ID does not go with PEEK, which charges nothing")
	}
	return nil
}

// costOf reads units to charge.
func costOf(arg string, b []byte) (int64, error) {
	n, ok := parseInt(b)
	if !ok {
		return 0, notInteger(arg, b)
	}
	if n < 0 {
		return 0, fmt.Errorf("%s must be 0 or more, not %d: RL.REFUND gives back", arg, n)
	}
	return n, nil
}

// limitOf reads a key and its limit.
func (c *client) limitOf(key, expr []byte) (algo.Limit, error) {
	if err := c.checkKeys([][]byte{key}); err != nil {
		return algo.Limit{}, err
	}
	l, err := c.srv.limiter.Parse(expr)
	if err != nil {
		return algo.Limit{}, fmt.Errorf("limit %w", err)
	}
	return l, nil
}

// takes makes RL.TAKE or RL.PEEK key limit [COST n] [PEEK] [ID token] [TRACE].
func takes(peek bool) func(*client, [][]byte) error {
	return func(c *client, args [][]byte) error {
		limit, err := c.limitOf(args[1], args[2])
		if err != nil {
			return err
		}
		o := takeOptions{peek: peek}
		if err := o.read(args[3:], 0); err != nil {
			return err
		}
		call := c.call(taken)
		call.Op, call.Key, call.Limit, call.Cost, call.Peek = limiter.Take, args[1], limit, o.cost, o.peek
		call.ID, call.Traced = o.id, o.trace
		return nil
	}
}

// refund is RL.REFUND key limit n [ID token].
func refund(c *client, args [][]byte) error {
	limit, err := c.limitOf(args[1], args[2])
	if err != nil {
		return err
	}
	var o takeOptions
	switch {
	case len(args) > 4 && !is(args[4], "id"):
		return fmt.Errorf("unknown option %s, use ID token", quoted(args[4]))
	case len(args) > 6:
		return fmt.Errorf("%s does not go here: nothing follows ID token", quoted(args[6]))
	default:
		if err := o.read(args[4:], 0); err != nil {
			return err
		}
	}
	n, ok := parseInt(args[3])
	switch {
	case !ok:
		return notInteger("n", args[3])
	case n < 1:
		return fmt.Errorf("n must be 1 or more, not %d: it is the number of units to give back", n)
	}
	call := c.call(taken)
	call.Op, call.Key, call.Limit, call.Cost = limiter.Take, args[1], limit, -n
	call.ID = o.id
	return nil
}

// takeAll is RL.TAKEALL count key limit [key limit ...] [COST n|COSTS n1 ...] [PEEK] [ID token] [TRACE].
func takeAll(c *client, args [][]byte) error {
	count, ok := parseInt(args[1])
	if !ok {
		return notInteger("count", args[1])
	}
	if count < 1 || count > limiter.MaxParts {
		return fmt.Errorf("count must be 1 to %d, not %d: it is the number of limits", limiter.MaxParts, count)
	}
	n := int(count)
	if len(args) < 2+2*n {
		return fmt.Errorf("count is %d, so %d keys with a limit each are needed, and there are %d arguments after it", n, n, len(args)-2)
	}
	var o takeOptions
	if err := o.read(args[2+2*n:], n); err != nil {
		return err
	}
	parts := c.s.chunk.NewParts(n)
	for i := range parts {
		p := &parts[i]
		p.Key = args[2+2*i]
		var err error
		if p.Limit, err = c.limitOf(p.Key, args[3+2*i]); err != nil {
			return fmt.Errorf("%w, the %s", err, ordinal(i+1))
		}
		if p.Cost = o.cost; o.costs != nil {
			if p.Cost, err = costOf("COSTS", o.costs[i]); err != nil {
				return err
			}
		}
	}
	if err := limiter.CheckParts(parts); err != nil {
		return err
	}
	call := c.call(takenAll)
	call.Op, call.Key, call.Parts, call.Peek = limiter.TakeAll, args[2], parts, o.peek
	call.ID, call.Traced = o.id, o.trace
	return nil
}

// keysOfTakeAll is where the keys of RL.TAKEALL are; nil: they cannot be told.
func keysOfTakeAll(args [][]byte) (keys [][]byte) {
	n, ok := parseInt(args[1])
	if !ok || n < 1 || n > limiter.MaxParts || len(args) < 2+2*int(n) {
		return nil
	}
	for i := range int(n) {
		keys = append(keys, args[2+2*i])
	}
	return keys
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%10 == 1 && n != 11:
		suffix = "st"
	case n%10 == 2 && n != 12:
		suffix = "nd"
	case n%10 == 3 && n != 13:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s limit", n, suffix)
}

// listOf is RL.LIST key.
func listOf(c *client, args [][]byte) error {
	if err := c.checkKeys(args[1:2]); err != nil {
		return err
	}
	call := c.call(listed)
	call.Op, call.Key = limiter.List, args[1]
	return nil
}

// waitMS is a time to wait in ms, rounded up. An int64 of ns has below 2^53 of them, so
// every client can hold it.
func waitMS(ns int64) int64 {
	if ns == algo.Never {
		return -1
	}
	return ceilMS(ns)
}
