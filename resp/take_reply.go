package resp

import (
	"github.com/tidwall/redcon"

	"limitd/algo"
	"limitd/limiter"
)

// appendTaken is the reply of RL.TAKE: allowed, limit, remaining, retry_after_ms,
// reset_after_ms, delay_ms, at_ms, with TRACE the origin. The same in RESP2 and RESP3.
func appendTaken(dst []byte, call *limiter.Call) []byte {
	v := &call.Verdict
	if call.Traced {
		dst = append(dst, "*8\r\n"...)
	} else {
		dst = append(dst, "*7\r\n"...)
	}
	dst = redcon.AppendInt(dst, int64(oneIf(v.Allowed)))
	dst = appendLimitOf(dst, v)
	dst = redcon.AppendInt(dst, ceilMS(call.At))
	if call.Traced {
		dst = appendOrigin(dst, call)
	}
	return dst
}

// appendTakenAll is the reply of RL.TAKEALL: allowed, denied_by, retry_after_ms, at_ms,
// and for each limit limit, remaining, retry_after_ms, reset_after_ms, delay_ms; with TRACE the origin.
func appendTakenAll(dst []byte, call *limiter.Call) []byte {
	dst = redcon.AppendArray(dst, 4+len(call.Parts)+oneIf(call.Traced))
	dst = redcon.AppendInt(dst, int64(oneIf(call.Verdict.Allowed)))
	dst = redcon.AppendInt(dst, call.N)
	dst = redcon.AppendInt(dst, waitMS(call.Verdict.RetryAfter))
	dst = redcon.AppendInt(dst, ceilMS(call.At))
	for i := range call.Parts {
		dst = append(dst, "*5\r\n"...)
		dst = appendLimitOf(dst, &call.Parts[i].Verdict)
	}
	if call.Traced {
		dst = appendOrigin(dst, call)
	}
	return dst
}

// appendLimitOf is limit, remaining, retry_after_ms, reset_after_ms, delay_ms.
func appendLimitOf(dst []byte, v *algo.Verdict) []byte {
	dst = redcon.AppendInt(dst, v.Limit)
	dst = redcon.AppendInt(dst, v.Remaining)
	dst = redcon.AppendInt(dst, waitMS(v.RetryAfter))
	dst = redcon.AppendInt(dst, waitMS(v.ResetAfter))
	return redcon.AppendInt(dst, waitMS(v.Delay))
}

// appendListed is the reply of RL.LIST: for each record algorithm, period (of
// calendar windows with their options), used, expires_in_ms.
func appendListed(dst []byte, call *limiter.Call) []byte {
	dst = redcon.AppendArray(dst, len(call.Parts))
	for i := range call.Parts {
		p := &call.Parts[i]
		name, period := "unknown", ""
		if id, err := algo.ReadIdent(p.Ident); err == nil {
			name, period = id.Algorithm.Name(), id.String()
		}
		dst = redcon.AppendArray(dst, 4)
		dst = redcon.AppendBulkString(dst, name)
		dst = redcon.AppendBulkString(dst, period)
		dst = redcon.AppendInt(dst, p.N)
		dst = redcon.AppendInt(dst, waitMS(p.Verdict.ResetAfter))
	}
	return dst
}
