package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run that crashed left only some of its files, or a part of one. The report says
// which, and shows the rest.
func TestACrashedRunStillHasAReport(t *testing.T) {
	for _, tt := range []struct {
		file string
		cut  int64 // 0: the file is missing
		says string
		lost string // of the whole report
	}{
		{"run.json", 0, "run.json : missing; the seed", "seed 7"},
		{"run.json", 100, "run.json : damaged", "seed 7"},
		{"verdict.json", 0, "verdict.json : missing; nothing was judged", "✗"},
		{"history.jsonl", 0, "history.jsonl : missing; there are no operations", "Latency"},
		{"history.jsonl", 1200, "history.jsonl : line 10 cannot be read", "in no list"},
		{"health.jsonl", 0, "health.jsonl : missing; it is not shown when nodes were down", "n1: not up"},
		{"samples.jsonl", 0, "samples.jsonl : missing; roles, terms", "follower, term"},
		{"samples.jsonl", 1, "samples.jsonl : line 1 cannot be read", "follower, term"},
		{"schedule.jsonl", 0, "schedule.jsonl : missing; the periods of faults", "in no list"},
		{"trace", 0, "trace/ : missing; the leaders' decisions", "leaders' decisions, exact"},
		{"trace/n3.jsonl", 200, "in no list", "in no list"}, // cut as a kill cuts: nothing to say
		{"log", 0, "log/ : missing; what the nodes printed", "starts again"},
	} {
		dir := golden(t)
		file := filepath.Join(dir, tt.file)
		if tt.cut > 0 {
			if err := os.Truncate(file, tt.cut); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(pageText(t, made(t, dir)), "\n", " ")
		if says := strings.Contains(text, tt.says); says != (tt.says != "in no list") {
			t.Errorf("%s cut to %d: %q is in the report: %v", tt.file, tt.cut, tt.says, says)
		}
		if strings.Contains(text, tt.lost) {
			t.Errorf("%s cut to %d: the report still says %q", tt.file, tt.cut, tt.lost)
		}
		if tt.file != "verdict.json" && !strings.Contains(text, "2 of 3 checks do not hold") {
			t.Errorf("%s cut to %d: the verdict is gone", tt.file, tt.cut)
		}
	}
}

func TestAnEmptyDirectoryHasAReport(t *testing.T) {
	text := pageText(t, made(t, t.TempDir()))
	for _, want := range []string{"unknown", "The run was not judged.", "run.json", "verdict.json", "history.jsonl", "health.jsonl", "samples.jsonl", "schedule.jsonl", "trace/", "log/",
		"no fault was injected", "no operation was recorded"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
}

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if err := Write(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want an error that names %s", err, dir)
	}
}
