package algo

// NewThrottle makes the limit of CL.THROTTLE key max_burst count period.
// STUB: replaced by the algo work.
func NewThrottle(maxBurst, count, period int64) (Limit, error) { panic("todo") }

// CheckCost reports whether cost (may be negative: a refund) can be represented under l.
func (l Limit) CheckCost(cost int64) error { panic("todo") }

// Ident returns the bytes that, with the key, identify the record of l. The result must not be modified.
func (l Limit) Ident() []byte { panic("todo") }

// Decide decides a call of cost units at time now (ns, cluster time) on state
// (nil: no record, or an expired one). buf gives room for the new state.
func (l Limit) Decide(state []byte, now, cost int64, buf []byte) (Verdict, Effect) { panic("todo") }
