package resp

import (
	"bytes"
	"fmt"

	"github.com/tidwall/redcon"
)

// What a key holds changes with the clock, so nothing that is read here can be cached
// for any time. Client libraries that cache on the client insist on CLIENT TRACKING all
// the same. So it is answered as Redis does, and in RESP3 each reply that a client may
// cache is followed at once by the message that it is stale.

// The bounds of CLIENT TRACKING … PREFIX, because prefixes are kept as long as the connection.
const (
	maxPrefixes    = 16
	maxPrefixBytes = 1 << 10
)

// tracking is the state of CLIENT TRACKING of a connection.
type tracking struct {
	on       bool
	bcast    bool
	optIn    bool
	optOut   bool
	noLoop   bool
	caching  bool // CLIENT CACHING was said, to yes with optIn and to no with optOut
	prefixes [][]byte
}

func (t *tracking) stop() { *t = tracking{} }

// clientTracking is CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX p …] [BCAST] [OPTIN] [OPTOUT] [NOLOOP].
func clientTracking(c *client, dst []byte, args [][]byte) []byte {
	want := tracking{on: true}
	for opts := args[3:]; len(opts) > 0; opts = opts[1:] {
		switch {
		case is(opts[0], "redirect") && len(opts) > 1:
			if _, ok := parseInt(opts[1]); !ok {
				return redcon.AppendError(dst, errInteger)
			}
			return redcon.AppendError(dst, "ERR REDIRECT is not supported by limitd: only a RESP3 connection is told, and only of what it has read itself")
		case is(opts[0], "prefix") && len(opts) > 1:
			opts = opts[1:]
			want.prefixes = append(want.prefixes, opts[0])
		case is(opts[0], "bcast"):
			want.bcast = true
		case is(opts[0], "optin"):
			want.optIn = true
		case is(opts[0], "optout"):
			want.optOut = true
		case is(opts[0], "noloop"):
			want.noLoop = true
		default:
			return redcon.AppendError(dst, errSyntax)
		}
	}
	switch {
	case is(args[2], "off"):
		c.track.stop()
	case !is(args[2], "on"):
		return redcon.AppendError(dst, errSyntax)
	default:
		if text := c.track.change(want); text != "" {
			return redcon.AppendError(dst, text)
		}
	}
	c.tracks.Store(c.track.on)
	return redcon.AppendOK(dst)
}

// change turns tracking on or changes it, or says why not.
func (t *tracking) change(want tracking) string {
	switch {
	case !want.bcast && len(want.prefixes) > 0:
		return "ERR PREFIX option requires BCAST mode to be enabled"
	case t.on && t.bcast != want.bcast:
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	case want.bcast && (want.optIn || want.optOut):
		return "ERR OPTIN and OPTOUT are not compatible with BCAST"
	case want.optIn && want.optOut:
		return "ERR You can't specify both OPTIN mode and OPTOUT mode"
	case want.optIn && t.optOut, want.optOut && t.optIn:
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	}
	if want.bcast {
		if len(want.prefixes) == 0 && len(t.prefixes) == 0 {
			want.prefixes = [][]byte{{}}
		}
		if text := t.collision(want.prefixes); text != "" {
			return text
		}
		for i, p := range want.prefixes {
			want.prefixes[i] = bytes.Clone(p) // it lies in the read buffer
		}
		want.prefixes = append(t.prefixes[:len(t.prefixes):len(t.prefixes)], want.prefixes...)
	}
	*t = want
	return ""
}

// collision says which prefixes do not go with each other, or are too many.
func (t *tracking) collision(prefixes [][]byte) string {
	size := 0
	for _, p := range append(t.prefixes[:len(t.prefixes):len(t.prefixes)], prefixes...) {
		size += len(p)
	}
	if len(t.prefixes)+len(prefixes) > maxPrefixes || size > maxPrefixBytes {
		return fmt.Sprintf("ERR too many prefixes: a connection may have %d of %d bytes together", maxPrefixes, maxPrefixBytes)
	}
	for i, p := range prefixes {
		for _, old := range t.prefixes {
			if overlap(p, old) {
				return fmt.Sprintf("ERR Prefix '%s' overlaps with an existing prefix '%s'. Prefixes for a single client must not overlap.", quoted(p), quoted(old))
			}
		}
		for _, other := range prefixes[i+1:] {
			if overlap(p, other) {
				return fmt.Sprintf("ERR Prefix '%s' overlaps with another provided prefix '%s'. Prefixes for a single client must not overlap.", quoted(p), quoted(other))
			}
		}
	}
	return ""
}

func overlap(a, b []byte) bool { return bytes.HasPrefix(a, b) || bytes.HasPrefix(b, a) }

// clientCaching is CLIENT CACHING YES|NO: whether the next command may be cached.
func clientCaching(c *client, dst []byte, args [][]byte) []byte {
	switch t := &c.track; {
	case !t.on:
		return redcon.AppendError(dst, "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case is(args[2], "yes") && !t.optIn:
		return redcon.AppendError(dst, "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case is(args[2], "no") && !t.optOut:
		return redcon.AppendError(dst, "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	case !is(args[2], "yes") && !is(args[2], "no"):
		return redcon.AppendError(dst, errSyntax)
	}
	c.track.caching = true
	return redcon.AppendOK(dst)
}

// clientGetRedir is CLIENT GETREDIR: -1 without tracking, 0 with it, as nothing is redirected.
func clientGetRedir(c *client, dst []byte, _ [][]byte) []byte {
	return redcon.AppendInt(dst, int64(oneIf(c.track.on)-1))
}

func clientTrackingInfo(c *client, dst []byte, _ [][]byte) []byte {
	t := &c.track
	flags := []string{"off"}
	if t.on {
		flags[0] = "on"
	}
	for _, f := range []struct {
		is   bool
		name string
	}{
		{t.bcast, "bcast"}, {t.optIn, "optin"}, {t.optIn && t.caching, "caching-yes"},
		{t.optOut, "optout"}, {t.optOut && t.caching, "caching-no"}, {t.noLoop, "noloop"},
	} {
		if f.is {
			flags = append(flags, f.name)
		}
	}
	dst = c.p().mapOf(dst, 3)
	dst = c.p().set(redcon.AppendBulkString(dst, "flags"), len(flags))
	for _, f := range flags {
		dst = redcon.AppendBulkString(dst, f)
	}
	dst = appendIntPair(dst, "redirect", int64(oneIf(t.on)-1))
	dst = redcon.AppendArray(redcon.AppendBulkString(dst, "prefixes"), len(t.prefixes))
	for _, p := range t.prefixes {
		dst = redcon.AppendBulk(dst, p)
	}
	return dst
}

// invalidate follows the reply of a command: it says that the command's keys are stale,
// if a client might cache the reply. That is after each read; with OPTIN after the
// command that CLIENT CACHING YES was for, whatever it is.
func (c *client) invalidate(cmd *command, args [][]byte) {
	t := &c.track
	if cmd.isOf("client") {
		return // the command that CLIENT CACHING is for is yet to come
	}
	may := cmd.reads
	switch {
	case t.optIn:
		may = t.caching && (cmd.lastKey != 0 || cmd.keysOf != nil)
	case t.optOut:
		may = may && !t.caching
	}
	t.caching = false
	if !may || c.p() != 3 {
		return
	}
	var stale [][]byte
	for _, key := range cmd.keys(args) {
		if t.follows(key) {
			stale = append(stale, key)
		}
	}
	if len(stale) == 0 {
		return
	}
	dst := header(c.begin(), '>', 2)
	dst = redcon.AppendBulkString(dst, "invalidate")
	dst = redcon.AppendArray(dst, len(stale))
	for _, key := range stale {
		dst = redcon.AppendBulk(dst, key)
	}
	c.reply(dst)
}

func (t *tracking) follows(key []byte) bool {
	if !t.bcast {
		return true
	}
	for _, p := range t.prefixes {
		if bytes.HasPrefix(key, p) {
			return true
		}
	}
	return false
}
