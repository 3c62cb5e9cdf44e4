package resp

import (
	"strconv"

	"github.com/tidwall/redcon"

	"limitd/limiter"
)

// appendOrigin is the last element of a reply with TRACE: names and values in turn, as
// strings.
func appendOrigin(dst []byte, call *limiter.Call) []byte {
	o := call.Origin
	if o == nil {
		o = &limiter.Origin{}
	}
	v := &call.Verdict
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	index := func(n uint64) string { return strconv.FormatUint(n, 10) }
	pairs := [...]string{
		"index", index(o.Index), "base", index(o.Base), "term", index(o.Term), "round", index(o.Round), "seq", index(o.Seq), "node", o.Node,
		"at_ns", number(call.At), "retry_ns", number(v.RetryAfter), "reset_ns", number(v.ResetAfter), "delay_ns", number(v.Delay),
		"repeated", strconv.Itoa(oneIf(call.Repeated)),
	}
	dst = redcon.AppendArray(dst, len(pairs))
	for _, s := range pairs {
		dst = redcon.AppendBulkString(dst, s)
	}
	return dst
}
