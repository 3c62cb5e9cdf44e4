package check

import (
	"slices"
	"strconv"
	"strings"

	"limitd/jepsen/check/model"
	"limitd/trace"
)

// The commands that name limits:
//
//	RL.TAKE|RL.PEEK key limit [COST n] [PEEK] [ID token]
//	RL.REFUND key limit n [ID token]
//	RL.TAKEALL count key limit [key limit ...] [COST n|COSTS n1 ...] [PEEK] [ID token]

// parseLimits reads one of them. What is not understood is none of ours.
func (o *op) parseLimits() {
	cmd := o.invoke.Cmd
	name, rest := strings.ToUpper(cmd[0]), cmd[1:]
	n := 1
	if o.verb == takeAll {
		n, _ = strconv.Atoi(cmd[1])
		rest = cmd[2:]
	}
	if n < 1 || len(rest) < 2*n || !o.readPairs(rest[:2*n]) {
		o.verb, o.parts = other, nil
		return
	}
	rest = rest[2*n:]
	o.setCosts([]string{"1"})
	ok := true
	if name == "RL.REFUND" {
		ok = len(rest) > 0 && o.setCosts(rest[:1])
		o.parts[0].cost = -o.parts[0].cost
		rest = rest[min(1, len(rest)):]
	}
	o.peek = name == "RL.PEEK"
	if !ok || !o.options(rest) {
		o.verb, o.parts = other, nil
	}
}

func (o *op) readPairs(words []string) bool {
	for i := 0; i < len(words); i += 2 {
		l, err := model.ParseLimit(words[i+1])
		if err != nil {
			return false
		}
		k := key{uint8(o.invoke.NS), trace.Key([]byte(words[i]))}
		o.parts = append(o.parts, part{record: model.Record{NS: k.ns, Key: k.name, Kind: l.Identity}, limit: l})
		if !slices.Contains(o.keys, k) {
			o.keys = append(o.keys, k)
		}
	}
	return true
}

// setCosts gives each limit its cost, or all of them the same.
func (o *op) setCosts(words []string) bool {
	for i := range o.parts {
		n, err := strconv.ParseInt(words[i%len(words)], 10, 64)
		if err != nil {
			return false
		}
		o.parts[i].cost = n
	}
	return true
}

func (o *op) options(words []string) bool {
	for len(words) > 0 {
		name, n := strings.ToUpper(words[0]), 1
		switch name {
		case "COSTS":
			n = len(o.parts)
		case "PEEK":
			n = 0
		}
		if len(words) < 1+n {
			return false
		}
		values := words[1 : 1+n]
		words = words[1+n:]
		switch name {
		case "COST", "COSTS":
			if !o.setCosts(values) {
				return false
			}
		case "PEEK":
			o.peek = true
		case "ID":
			o.id = trace.Key([]byte(values[0]))
		default:
			return false
		}
	}
	return true
}

// wait is a time as the RL commands tell it: in ms, rounded up; -1: never.
func wait(ns int64) int64 {
	if ns == model.Never {
		return -1
	}
	return model.Ceil(ns, 1e6)
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
