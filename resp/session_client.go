package resp

import (
	"fmt"
	"strings"

	"github.com/tidwall/redcon"
)

// maxName bounds the names that a client gives itself, in bytes, because they
// are kept as long as the connection.
const maxName = 128

const (
	errBadName  = "ERR Client names cannot contain spaces, newlines or special characters."
	errLongName = "ERR Client names cannot be longer than 128 bytes."
)

// badName tells what is wrong with a name that a client gives itself.
func badName(b []byte) string {
	if len(b) > maxName {
		return errLongName
	}
	for _, c := range b {
		if c < '!' || c > '~' {
			return errBadName
		}
	}
	return ""
}

func clientSetName(c *client, dst []byte, args [][]byte) []byte {
	if text := badName(args[2]); text != "" {
		return redcon.AppendError(dst, text)
	}
	c.setName(string(args[2]))
	return redcon.AppendOK(dst)
}

func clientGetName(c *client, dst []byte, _ [][]byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name == "" {
		return c.p().null(dst)
	}
	return redcon.AppendBulkString(dst, c.name)
}

// clientSetInfo is CLIENT SETINFO LIB-NAME|LIB-VER value.
func clientSetInfo(c *client, dst []byte, args [][]byte) []byte {
	at := &c.libName
	switch {
	case is(args[2], "lib-name"):
	case is(args[2], "lib-ver"):
		at = &c.libVer
	default:
		return redcon.AppendError(dst, fmt.Sprintf("ERR Unrecognized option '%s'", quoted(args[2])))
	}
	if badName(args[3]) != "" {
		return redcon.AppendError(dst, fmt.Sprintf(
			"ERR %s cannot contain spaces, newlines or special characters, nor be longer than %d bytes.", strings.ToUpper(string(args[2])), maxName))
	}
	c.mu.Lock()
	*at = string(args[3])
	c.mu.Unlock()
	return redcon.AppendOK(dst)
}

func clientID(c *client, dst []byte, _ [][]byte) []byte { return redcon.AppendInt(dst, c.id) }

// clientReply is CLIENT REPLY ON|OFF|SKIP. Only ON is answered.
func clientReply(c *client, dst []byte, args [][]byte) []byte {
	switch {
	case is(args[2], "on"):
		c.mute, c.skip = false, false
		return redcon.AppendOK(dst)
	case is(args[2], "off"):
		c.mute = true
	case is(args[2], "skip"):
		c.skipNext = true
	default:
		return redcon.AppendError(dst, errSyntax)
	}
	return dst
}

// clientSwitch is for settings that are accepted because nothing follows from
// them here: nothing is evicted or touched.
func clientSwitch(c *client, dst []byte, args [][]byte) []byte {
	if !is(args[2], "on") && !is(args[2], "off") {
		return redcon.AppendError(dst, errSyntax)
	}
	return redcon.AppendOK(dst)
}
