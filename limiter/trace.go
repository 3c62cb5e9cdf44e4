package limiter

import (
	"limitd/algo"
	"limitd/fsm"
	"limitd/trace"
)

var opNames = [...]string{Take: "take", Reset: "reset", Exists: "exists", Type: "type", TTL: "ttl", Flush: "flush", FlushAll: "flushall", TakeAll: "takeall", List: "list"}

// traceRound notes what a round has decided, before its entry is proposed. No entry:
// there is nothing to propose.
func (l *Limiter) traceRound(turn fsm.Turn, tasks []*task, entry []byte) {
	row := trace.Row{Kind: trace.Round, Term: turn.Term, Round: l.round, Base: turn.Base, At: turn.At}
	if entry != nil {
		row.Digest = trace.Digest(entry)
	}
	for _, t := range tasks {
		for i := t.next; i < t.upTo; i++ {
			row.Calls = appendTraced(row.Calls, &t.calls[i])
		}
	}
	l.cfg.Trace(row)
}

// traceOutcome notes what became of the round.
func (l *Limiter) traceOutcome(turn fsm.Turn, index uint64, outcome string) {
	l.cfg.Trace(trace.Row{Kind: trace.Outcome, Term: turn.Term, Round: l.round, Index: index, Outcome: outcome})
}

// traceLocal notes the calls with a tag that were answered here alone at now, while
// the applied index went from index to upto.
func (l *Limiter) traceLocal(calls []Call, now int64, index, upto uint64, leading bool) {
	row := trace.Row{Kind: trace.Local, At: now, Index: index, Upto: upto, Leading: leading}
	for i := range calls {
		if calls[i].Tag != 0 {
			row.Calls = appendTraced(row.Calls, &calls[i])
		}
	}
	if len(row.Calls) > 0 {
		l.cfg.Trace(row)
	}
}

// appendTraced appends a call as traces have it.
func appendTraced(dst []trace.Call, c *Call) []trace.Call {
	x := trace.Call{Tag: c.Tag, Op: opNames[c.Op], NS: c.NS, Key: trace.Key(c.Key), N: c.N, Status: c.Status.Code()}
	if c.Op == Take {
		v := &c.Verdict
		x.Algorithm, x.Interval, x.Burst, x.Cost = uint8(c.Limit.Algorithm), c.Limit.Interval, c.Limit.Burst, c.Cost
		x.Allowed, x.Remaining, x.Retry, x.Reset, x.Delay, x.Peek = v.Allowed, v.Remaining, v.RetryAfter, v.ResetAfter, v.Delay, c.Peek
		if c.Limit.Algorithm != algo.Throttle {
			x.Limit = c.Limit.String()
		}
	}
	if c.Op == TakeAll {
		x.Allowed, x.Retry, x.N, x.Peek = c.Verdict.Allowed, c.Verdict.RetryAfter, c.N, c.Peek
		for i := range c.Parts {
			p := &c.Parts[i]
			v := &p.Verdict
			x.Parts = append(x.Parts, trace.Part{
				Key: trace.Key(p.Key), Limit: p.Limit.String(), Cost: p.Cost,
				Allowed: v.Allowed, Remaining: v.Remaining, Retry: v.RetryAfter, Reset: v.ResetAfter, Delay: v.Delay,
			})
		}
	}
	if len(c.ID) > 0 {
		x.ID, x.Repeated = trace.Key(c.ID), c.Repeated
	}
	for _, k := range c.More {
		x.More = append(x.More, trace.Key(k))
	}
	return append(dst, x)
}
