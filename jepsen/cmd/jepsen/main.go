// Command jepsen breaks a cluster of real limitd processes and judges what it did.
//
//	jepsen run -seed 1 -nemesis all -time 25s -dir D    make a run and judge it
//	jepsen replay D                                     make a run with the seed and options of another one
//	jepsen check D                                      judge a run again, from its files alone
//	jepsen report D                                     the page of a run or of a soak, for people
//	jepsen soak -time 2h -dir D                         run after run, a line for each in D/soak.jsonl
//	jepsen soak -summary -dir D                         what the runs of a soak say together
//	jepsen ci                                           the runs of every change, and the quick part of the self-test
//	jepsen selftest                                     known-bad builds, each of which must be reported
//
// Exit codes: 0 valid, 1 invalid, 2 the verdict is unknown or there is no run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	valid   = 0
	invalid = 1
	unknown = 2
)

var verbs = map[string]func([]string) (int, error){
	"run": runVerb, "replay": replayVerb, "check": checkVerb, "report": reportVerb, "soak": soakVerb, "selftest": selftestVerb, "ci": ciVerb}

func main() {
	known := strings.Join(slices.Sorted(maps.Keys(verbs)), ", ")
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: jepsen VERB, which is one of", known)
		os.Exit(unknown)
	}
	verb, ok := verbs[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "jepsen: there is no verb %q: there are %s\n", os.Args[1], known)
		os.Exit(unknown)
	}
	code, err := verb(os.Args[2:])
	if err != nil {
		code = unknown
		if !errors.Is(err, errUsage) {
			fmt.Fprintln(os.Stderr, "jepsen:", err)
		}
	}
	os.Exit(code)
}

// errUsage is returned for flags that package flag has complained about already.
var errUsage = errors.New("usage")

// flags parses the flags of a verb, which takes no other arguments but rest many.
func flags(f *flag.FlagSet, args []string, rest int) error {
	if err := f.Parse(args); err != nil {
		return errUsage
	}
	if f.NArg() != rest {
		return fmt.Errorf("%s takes flags and %d further arguments, not %q", f.Name(), rest, f.Args())
	}
	return nil
}
