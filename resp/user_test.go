package resp

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestWhoMayRunWhat is the table of all commands with the groups that may run them, so
// that no command comes in without somebody looking at that.
func TestWhoMayRunWhat(t *testing.T) {
	var lines []string
	for _, cmd := range newTable(true).list {
		for _, c := range append([]*command{cmd}, cmd.subs...) {
			if c.run == nil && c.ask == nil {
				continue // a container: its name alone is an error
			}
			var who []string
			for _, g := range []struct {
				name string
				may  Permission
			}{{"limit", MayLimit}, {"read", MayRead}, {"admin", MayAdmin}} {
				if c.needs&g.may != 0 {
					who = append(who, g.name)
				}
			}
			switch {
			case c.noAuth:
				who = []string{"anybody, before a password too"}
			case c.needs == 0:
				who = []string{"all users"}
			}
			keys := ""
			if c.lastKey != 0 || c.keysOf != nil {
				keys = ", on their keys"
			}
			lines = append(lines, fmt.Sprintf("%s: %s%s", c.name, strings.Join(who, " or "), keys))
		}
	}
	slices.Sort(lines)
	got, file := strings.Join(lines, "\n")+"\n", "testdata/permissions.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("who may run what has changed; look at it, then: go test ./resp -run WhoMayRunWhat -update\n%s", got)
	}
}
