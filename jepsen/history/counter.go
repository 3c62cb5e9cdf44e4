package history

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// writeCounters writes counter/<ns>-<key>.edn for each key that is a counter: nobody
// gives it back or resets it, one limit is asked of it, and that gives back not one
// unit in the time of the run. A charge adds to it, a peek reads what is used, and
// Jepsen's checker counter so says whether each read lies between what was
// acknowledged and what was asked.
func writeCounters(dir string, events []Event) error {
	dir = filepath.Join(dir, CounterDir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	keys, order := findCounters(events)
	if len(order) == 0 {
		return nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	text := map[place][]string{}
	for _, e := range asked(events) {
		at := place{e.NS, e.Key}
		t, ok := readThrottle(e.Cmd)
		if !keys[at] || !ok {
			continue
		}
		if t.quantity > 0 {
			text[at] = append(text[at], settle(e).operation(":add", strconv.FormatInt(t.quantity, 10)))
			continue
		}
		value := "nil"
		if r := throttleReply(e); r != nil {
			value = strconv.FormatInt(r[1]-r[2], 10)
		}
		text[at] = append(text[at], e.operation(":read", value))
	}
	for _, at := range order {
		name := fmt.Sprintf("%d-%s.edn", at.ns, url.QueryEscape(at.key))
		if err := writeText(filepath.Join(dir, name), text[at]); err != nil {
			return err
		}
	}
	return nil
}

// place is where a record lies.
type place struct {
	ns  int
	key string
}

// slowest is the least emission interval of a counter, ns.
const slowest = int64(3600e9)

// findCounters finds the keys that are counters, and the order of their first use.
func findCounters(events []Event) (counters map[place]bool, order []place) {
	found := map[place]throttle{}
	odd := map[place]bool{}
	flushed := map[int]bool{}
	end := int64(0)
	for _, e := range events {
		end = max(end, e.Time)
		if e.Type != Invoke || len(e.Cmd) == 0 {
			continue
		}
		at := place{e.NS, e.Key}
		switch name := strings.ToUpper(e.Cmd[0]); name {
		case "EXISTS", "TTL", "PTTL", "TYPE", "RL.LIST":
			continue
		case "FLUSHALL":
			return nil, nil
		case "FLUSHDB":
			flushed[e.NS] = true
			continue
		}
		t, ok := readThrottle(e.Cmd)
		first, known := found[at]
		switch {
		case !ok || t.quantity < 0:
			for _, k := range e.Cmd[1:] { // a reset names several
				odd[place{e.NS, k}] = true
			}
		case !known:
			found[at] = t
			order = append(order, at)
		case first.interval != t.interval || first.limit != t.limit:
			odd[at] = true
		}
	}
	order = slices.DeleteFunc(order, func(at place) bool {
		return odd[at] || flushed[at.ns] || found[at].interval < max(slowest, 2*end)
	})
	counters = map[place]bool{}
	for _, at := range order {
		counters[at] = true
	}
	return counters, order
}

// asked are the operations that have a tag, each completion with the command that it
// answers.
func asked(events []Event) (all []Event) {
	invoked := map[uint64]Event{}
	for _, e := range events {
		if e.Tag == 0 || e.Process == Nemesis {
			continue
		}
		if e.Type == Invoke {
			invoked[e.Tag] = e
		} else {
			i := invoked[e.Tag]
			e.Cmd, e.NS, e.Key = i.Cmd, i.NS, i.Key
		}
		all = append(all, e)
	}
	return all
}

// throttle is a CL.THROTTLE.
type throttle struct{ interval, limit, quantity int64 } // interval in ns

func readThrottle(cmd []string) (t throttle, ok bool) {
	if len(cmd) < 5 || len(cmd) > 6 || !strings.EqualFold(cmd[0], "CL.THROTTLE") {
		return t, false
	}
	n := []int64{0, 0, 0, 1}
	for i, s := range cmd[2:] {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return t, false
		}
		n[i] = v
	}
	if n[1] < 1 || n[2] < 1 || n[2] > 1<<32 {
		return t, false
	}
	return throttle{interval: n[2] * 1e9 / n[1], limit: n[0] + 1, quantity: n[3]}, true
}

// throttleReply are the integers of an ok CL.THROTTLE: limited, limit, remaining,
// retry_after, reset_after; nil if it is none.
func throttleReply(e Event) []int64 {
	list, _ := e.Reply.([]any)
	if e.Type != OK || len(list) != 5 {
		return nil
	}
	all := make([]int64, 5)
	for i := range list {
		n, ok := list[i].(int64)
		if !ok {
			return nil
		}
		all[i] = n
	}
	return all
}

// settle makes a denial a failure: an add that did not happen.
func settle(e Event) Event {
	if denied(e) {
		e.Type, e.Error = Fail, "denied"
	}
	return e
}
