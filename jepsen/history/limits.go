package history

import (
	"slices"
	"strconv"
	"strings"
)

// addsTo says that a command adds to the set: it charges something, and has no ID. (A call
// under an ID may be answered as an earlier one, and adds nothing then.)
func addsTo(cmd []string) bool {
	if t, ok := readThrottle(cmd); ok {
		return t.quantity > 0
	}
	if len(cmd) < 3 {
		return false
	}
	rest := cmd[min(3, len(cmd)):]
	switch strings.ToUpper(cmd[0]) {
	case "RL.TAKE":
	case "RL.TAKEALL":
		n, err := strconv.Atoi(cmd[1])
		if err != nil || n < 1 || len(cmd) < 2+2*n {
			return false
		}
		rest = cmd[2+2*n:]
	default:
		return false
	}
	charges := true
	for len(rest) > 0 {
		word := strings.ToUpper(rest[0])
		rest = rest[1:]
		switch word {
		case "PEEK", "ID":
			return false
		case "COST", "COSTS": // the values are up to the next option
			end := slices.IndexFunc(rest, func(s string) bool { _, err := strconv.ParseInt(s, 10, 64); return err != nil })
			if end < 0 {
				end = len(rest)
			}
			charges = slices.ContainsFunc(rest[:end], func(s string) bool { return s != "0" })
			rest = rest[end:]
		}
	}
	return charges
}

// denied says that an answer denies: the first integer says so, of CL.THROTTLE by 1, of the
// RL commands by 0.
func denied(e Event) bool {
	list, _ := e.Reply.([]any)
	if e.Type != OK || len(list) == 0 || len(e.Cmd) == 0 {
		return false
	}
	if strings.HasPrefix(strings.ToUpper(e.Cmd[0]), "RL.TAKE") {
		return list[0] == int64(0)
	}
	return len(list) == 5 && list[0] == int64(1)
}
