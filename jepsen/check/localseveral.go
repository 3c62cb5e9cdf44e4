package check

import (
	"fmt"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// judgeAll judges a call that names several limits, each by itself.
func (l *locals) judgeAll(d *decision) {
	c := d.call
	said := trace.Call{Parts: c.Parts}
	if model.Conclude(&said); len(d.parts) != len(c.Parts) || said.Allowed != c.Allowed || said.Retry != c.Retry || said.N != c.N {
		l.report(d, fmt.Sprintf("allowed %v, wait %d, denied by %d: that is not what its limits say", c.Allowed, c.Retry, c.N))
		return
	}
	var old *Example
	fresh := c.Allowed
	for i, p := range d.parts {
		says, v := l.explain(d, p.record, func(view model.View) string {
			a := model.PeekPart(p.limit, view.State(p.record), d.row.At, p.cost, c.Allowed)
			got := c.Parts[i]
			if want := (model.Answer{Allowed: got.Allowed, Remaining: got.Remaining, Retry: got.Retry, Reset: got.Reset, Delay: got.Delay}); a != want {
				return fmt.Sprintf("limit %d of a takeall: decided %+v, the model %+v", i+1, want, a)
			}
			return ""
		})
		if says != "" {
			l.report(d, says)
			return
		}
		if c.Allowed || !p.allowed {
			if x := l.age(d, p.record, v); x == nil {
				fresh = true
			} else if old = x; c.Allowed {
				fresh = false
				break
			}
		}
	}
	if !fresh && old != nil {
		l.r.bad(*old)
	}
}

// judgeRead judges a read of a key, whose records may have been looked at one after the
// other: each as some state of its own that it may have been read in.
func (l *locals) judgeRead(d *decision) {
	k, n := d.keys()[0], d.call.N
	some, none := false, true // a record can have held state; all can have held none
	longest, not := false, false
	for _, kind := range append([]model.Identity{{Algorithm: model.Throttle}}, l.kinds[k]...) {
		rec := model.Record{NS: k.ns, Key: k.name, Kind: kind}
		nothing, less := false, false
		for _, v := range during(l.versions[rec], d.local.Index, l.e.seen(d.local)) {
			left := kind.Left(v.state, d.row.At)
			some, nothing = some || left > 0, nothing || left == 0
			longest, less = longest || left == n && left > 0, less || left <= n
		}
		none, not = none && nothing, not || !less
	}
	ok := n == 1 && some || n == 0 && none
	if d.call.Op == "ttl" {
		ok = n == -2 && none || longest && !not
	}
	if !ok {
		l.report(d, fmt.Sprintf("%s of a key that has %d records answers %d, which none of their states makes", d.call.Op, 1+len(l.kinds[k]), n))
	}
}
