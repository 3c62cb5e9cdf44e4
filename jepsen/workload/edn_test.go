package workload

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ednLine is an operation of a projection.
var ednLine = regexp.MustCompile(`^\{:type :(\w+), :f :(\w+), :process \d+, :time \d+, :index \d+, :value (nil|\d+|#\{[\d ]*\})(?:, :error ".*")?\}$`)

// readEDN calls fn with type, function and value of each line.
func readEDN(t *testing.T, file string, fn func(typ, f, value string)) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		m := ednLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("%s: %s", file, line)
		}
		fn(m[1], m[2], m[3])
	}
}

// judgeSet judges as Jepsen's checker set does, each read: what was acknowledged is in
// it, and nothing that was not attempted.
func judgeSet(t *testing.T, file string, want int) {
	t.Helper()
	asked, acked := map[string]bool{}, map[string]bool{}
	reads := 0
	readEDN(t, file, func(typ, f, value string) {
		switch {
		case f == "add" && typ == "invoke":
			asked[value] = true
		case f == "add" && typ == "fail":
			delete(asked, value)
		case f == "add" && typ == "ok":
			acked[value] = true
		case f == "read" && typ == "ok":
			reads++
			found := map[string]bool{}
			for _, tag := range strings.Fields(strings.Trim(value, "#{}")) {
				found[tag] = true
				if !asked[tag] {
					t.Errorf("read %d has %s, which nobody added", reads, tag)
				}
			}
			for tag := range acked {
				if !found[tag] {
					t.Errorf("read %d lost %s", reads, tag)
				}
			}
		}
	})
	if reads != want || len(acked) < 50 {
		t.Errorf("%s: %d reads and %d adds", file, reads, len(acked))
	}
}

// judgeCounters judges as Jepsen's checker counter does: a read is at least what was
// acknowledged when it began, and at most what was attempted when it ended.
func judgeCounters(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.edn"))
	if err != nil {
		t.Fatal(err)
	}
	used, reads := 0, 0
	for _, file := range files {
		acked, attempted, least := 0, 0, []int{}
		readEDN(t, file, func(typ, f, value string) {
			n, _ := strconv.Atoi(value)
			switch {
			case f == "add" && typ == "invoke":
				attempted += n
			case f == "add" && typ == "ok":
				acked += n
				used += n
			case f == "read" && typ == "invoke":
				least = append(least, acked)
			case f == "read" && typ == "ok":
				reads++
				if n < least[0] || n > attempted {
					t.Errorf("%s: read %d, want %d to %d", file, n, least[0], attempted)
				}
			}
			if f == "read" && typ != "invoke" {
				least = least[1:] // the oldest that is open: no more than that of any other
			}
		})
	}
	if used < 10 || reads < 10 {
		t.Errorf("%d files with %d used and %d reads", len(files), used, reads)
	}
}
