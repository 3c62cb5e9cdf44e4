package main

import (
	"regexp"
	"strings"
	"testing"
)

const limitsPage = "../../docs/limits.md"

// TestLimitsDocument types the commands of docs/limits.md, one block after the other
// in the same place, and looks that they print what the page shows.
func TestLimitsDocument(t *testing.T) {
	t.Parallel()
	text := readFile(t, limitsPage)
	const begin, end = "```console\n", "```\n"
	c := newConsole(t)
	var now strings.Builder
	blocks := 0
	for rest := text; rest != ""; blocks++ {
		before, block, ok := strings.Cut(rest, begin)
		now.WriteString(before)
		if !ok {
			break
		}
		block, rest, ok = strings.Cut(block, end)
		if !ok {
			t.Fatal("the last block has no end")
		}
		now.WriteString(begin + c.retype(block) + end)
	}
	if blocks < 10 {
		t.Errorf("%d blocks", blocks)
	}
	compare(t, limitsPage, text, now.String())
}

// Each verb is in the table of the README, and no other.
func TestReadmeHasEachVerb(t *testing.T) {
	_, table, _ := strings.Cut(readFile(t, "../../README.md"), "\n## Operating\n")
	table, _, _ = strings.Cut(table, "\nThe verbs")
	verbs := map[string]bool{}
	for _, c := range newRoot().Commands() {
		verbs[c.Name()] = true
	}
	shown := map[string]bool{"serve": true, "local": true, "config": true, "version": true} // elsewhere in it
	for _, m := range regexp.MustCompile("`limitd ([a-z-]+)").FindAllStringSubmatch(table, -1) {
		if !verbs[m[1]] && m[1] != "completion" {
			t.Errorf("README.md has limitd %s, which does not exist", m[1])
		}
		shown[m[1]] = true
	}
	for verb := range verbs {
		if !shown[verb] {
			t.Errorf("README.md does not have limitd %s among its verbs", verb)
		}
	}
}
