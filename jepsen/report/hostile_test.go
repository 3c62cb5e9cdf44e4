package report

import (
	"encoding/json"
	"strings"
	"testing"

	"limitd/jepsen/check"
	"limitd/jepsen/history"
	"limitd/trace"
)

// What a key, an error, a log or a nemesis says must never become part of the page's
// markup, whatever it is: made checks that.
func TestHostileTextStaysText(t *testing.T) {
	for _, evil := range []string{
		`"><script>alert(1)</script>`, `'><img src=x onerror=alert(1)>`, `</style></svg><script>alert(1)</script>`, `</title><svg onload=alert(1)>`,
		`<!--`, `]]>`, `javascript:alert(1)`, `{{.Dir}}`, `&lt;b&gt;`, "a\x00b\x1b[31m", "\u202eevil\u202c", "\xff\xfe", strings.Repeat("<", 5000), "a/../../b", "",
	} {
		dir := t.TempDir()
		lines := func(file string, values ...any) {
			var b strings.Builder
			for _, v := range values {
				line, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				b.Write(append(line, '\n'))
			}
			put(t, dir, file, b.String())
		}
		lines(history.RunFile, history.Run{
			Profile: evil, Nemeses: []string{evil}, Commit: "c" + evil, Mode: evil, Skipped: []string{evil}, Unsettled: []string{evil}, Nodes: []string{"n1" + evil},
			Started: "2026-01-02T03:04:05Z", Duration: 1e9, Settings: evil, Replay: evil, Gates: map[string]int64{evil: 1}, Tools: map[string]string{evil: evil},
		})
		lines(history.EventsFile,
			history.Event{Index: 0, Type: history.Info, Process: history.Nemesis, F: evil, Phase: "start", Targets: []string{evil}, Detail: evil},
			history.Event{Index: 1, Type: history.Invoke, Tag: 1, F: evil, Node: evil, Key: evil, Cmd: []string{evil, evil}},
			history.Event{Index: 2, Type: history.Info, Tag: 1, Time: 5e6, F: evil, Node: evil, Key: evil, Error: evil},
			history.Event{Index: 3, Type: history.Invoke, Tag: 2, Process: 1, Time: 5e6, Key: evil, Cmd: []string{"GET"}},
			history.Event{Index: 4, Type: history.OK, Tag: 2, Process: 1, Time: 6e6, Key: evil, Reply: evil},
		)
		lines(history.SamplesFile, history.Sample{Time: 1, Node: evil, Role: evil, Term: 1, ClusterNS: 5}, history.Sample{Time: 2, Node: "n1" + evil, Role: "leader"})
		lines("trace/n1.jsonl", trace.Row{Kind: trace.Kind(evil), Node: evil, Calls: []trace.Call{{Key: evil, Op: evil}}})
		put(t, dir, "log/n1.log", "time=2026-01-02T03:04:05.001Z "+evil+"\n"+evil+"\n")
		lines(history.VerdictFile, check.Verdict{Status: check.Status(evil), Figures: map[string]int64{evil: 1}, Checks: []check.Result{{
			Name: evil, Promise: evil, Says: evil, Status: check.Status(evil), Figures: map[string]int64{evil: 2},
			Examples: []check.Example{{Says: evil, Key: evil, Node: evil, Events: []int{2, -5, 99}, Rows: []string{evil, "trace/" + evil + ".jsonl:1", "trace/../run.jsonl:1", "trace/n1.jsonl:1"}}, {Says: evil}},
		}}})
		page := made(t, dir)
		if i := strings.IndexAny(page, "\x00\x1b\u202e"); i >= 0 {
			t.Errorf("%q: a character that a terminal or a reader's eye obeys is in the page: %q", evil, page[max(0, i-100):i+10])
		}
		lines(history.LedgerFile, history.SoakRun{Profile: evil, Commit: evil, Verdict: evil, Failed: []string{evil}, Dir: evil,
			Faults: map[string]int64{evil: 1}, NoService: map[string][]int64{evil: {0, -5, 1 << 62}}})
		index(t, dir)
	}
}
