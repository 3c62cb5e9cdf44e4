// Package line is the drivers' side of the line protocol (clients/README.md).
package line

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Address is what a driver is started with: host port user password, of which
// user and password may be empty.
func Address() (addr, user, password string) {
	if len(os.Args) != 5 {
		fmt.Fprintf(os.Stderr, "usage: %s HOST PORT USER PASSWORD\n", os.Args[0])
		os.Exit(2)
	}
	return os.Args[1] + ":" + os.Args[2], os.Args[3], os.Args[4]
}

// Client is one of the libraries.
type Client struct {
	Module string // path of the library's module
	Call   func(args ...string) (any, error)
	Pipe   func(n int, args ...string) ([]any, error) // an error in the place of a reply is one
}

// Serve answers stdin until it ends.
func Serve(c Client) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		words := strings.Fields(in.Text())
		switch {
		case len(words) > 1 && words[0] == "call":
			reply, err := c.Call(words[1:]...)
			say(reply, err)
		case len(words) > 2 && words[0] == "pipe":
			n, err := strconv.Atoi(words[1])
			if err == nil {
				var replies []any
				replies, err = c.Pipe(n, words[2:]...)
				say(tally(replies), err)
				continue
			}
			say(nil, err)
		case len(words) == 1 && words[0] == "version":
			say(version(c.Module), nil)
		case len(words) == 1 && words[0] == "quit":
			return
		default:
			say(nil, fmt.Errorf("unknown line %q", in.Text()))
		}
	}
}

func say(reply any, err error) {
	if err != nil {
		fmt.Println("err", strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Println("ok", strings.TrimSpace(flat(reply)))
}

// flat is a reply on one line.
func flat(reply any) string {
	list, ok := reply.([]any)
	if !ok {
		if b, ok := reply.([]byte); ok {
			return string(b)
		}
		return fmt.Sprint(reply)
	}
	words := make([]string, len(list))
	for i, item := range list {
		words[i] = flat(item)
	}
	return strings.Join(words, " ")
}

// tally is allowed, denied and errors of replies to CL.THROTTLE.
func tally(replies []any) string {
	var allowed, denied, errs int
	for _, reply := range replies {
		if list, ok := reply.([]any); !ok || len(list) != 5 {
			errs++
		} else if flat(list[0]) == "0" {
			allowed++
		} else {
			denied++
		}
	}
	return fmt.Sprint(allowed, denied, errs)
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == module {
			return strings.TrimPrefix(dep.Version, "v")
		}
	}
	return "unknown"
}
