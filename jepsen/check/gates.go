package check

import (
	"fmt"
	"maps"
	"slices"

	"limitd/jepsen/check/model"
	"limitd/jepsen/history"
	"limitd/trace"
)

// figures counts what the run did. Gates name them.
func (e *evidence) figures() map[string]int64 {
	f := map[string]int64{
		"operations": int64(len(e.ops)), "ok": 0, "fail": 0, "info": 0, "admitted": 0, "denied": 0, "refunds": 0, "resets": 0,
		"denied_alone": 0, "answered_alone": 0, "rounds": int64(len(e.rounds)), "entries": int64(len(e.lineage)), "void": 0, "restored": 0, "installed": 0, "starts": 0,
		"lists": 0, "of_calendars": 0, "turned_over": 0, "allowed_percent": 0, "denied_percent": 0, "of_limits": 0, "of_several": 0, "with_id": 0,
		"leader_changes": max(0, int64(len(e.clock.leader)-1)), "keys": 0,
	}
	keys := map[key]bool{}
	for _, o := range e.ops {
		f[string(o.typ)]++
		for _, k := range o.keys {
			keys[k] = true
		}
		allowed, answered := o.answered()
		if answered && o.verb != throttle {
			f["of_limits"]++
		}
		if answered && o.verb == takeAll {
			f["of_several"]++
		}
		if answered && o.id != "" {
			f["with_id"]++
		}
		if o.typ == history.OK && o.verb == list {
			f["lists"]++
		}
		if answered && slices.ContainsFunc(o.parts, func(p part) bool { return p.record.Kind.Calendar != model.Calendar{} }) {
			f["of_calendars"]++
		}
		switch {
		case o.typ != history.OK:
		case o.admitted():
			f["admitted"]++
		case answered && o.refunds():
			f["refunds"]++
		case answered && !allowed:
			f["denied"]++
		case o.verb == reset || o.verb == flush || o.verb == flushAll:
			f["resets"]++
		}
	}
	f["keys"] = int64(len(keys))
	if n := f["admitted"] + f["denied"]; n > 0 {
		f["allowed_percent"], f["denied_percent"] = 100*f["admitted"]/n, 100*f["denied"]/n
	}
	f["turned_over"] = e.turnedOver()
	for _, l := range e.locals {
		for i := range l.Calls {
			f["answered_alone"]++
			if c := &l.Calls[i]; (c.Op == "take" || c.Op == "takeall") && !c.Allowed {
				f["denied_alone"]++
			}
		}
	}
	for _, n := range e.nodes {
		for i := range n.rows {
			switch x := &n.rows[i]; {
			case x.Kind == trace.Start:
				f["starts"]++
			case x.Kind == trace.Restored:
				f["restored"]++
				if i > 0 && n.rows[i-1].Kind != trace.Start {
					f["installed"]++
				}
			case x.Kind == trace.Applied && x.Outcome == "void":
				f["void"]++
			}
		}
	}
	return f
}

// turnedOver counts the calendar windows that ended between two charges of their record.
func (e *evidence) turnedOver() (n int64) {
	ends := map[model.Record]int64{}
	for _, d := range e.agreed() {
		for _, p := range d.parts {
			if p.record.Kind.Calendar == (model.Calendar{}) || !d.charges() || !d.tookEffect() {
				continue
			}
			if _, end := p.limit.Window(d.row.At); ends[p.record] != end {
				if ends[p.record] != 0 {
					n++
				}
				ends[p.record] = end
			}
		}
	}
	return n
}

// checkGates: each figure of the run that has a gate is at least that. Below it, the
// run shows nothing: unknown, not invalid.
func checkGates(e *evidence, r *result) {
	f := e.figures()
	r.Checked = 1
	for _, name := range slices.Sorted(maps.Keys(e.run.Gates)) {
		r.Checked++
		least := e.run.Gates[name]
		n, ok := f[name]
		if !ok {
			r.open(Example{Says: fmt.Sprintf("run.json has a gate for %q; the figures are %v", name, slices.Sorted(maps.Keys(f)))})
		} else if n < least {
			r.open(Example{Says: fmt.Sprintf("%s: %d, and less than %d shows nothing", name, n, least)})
		}
	}
}
