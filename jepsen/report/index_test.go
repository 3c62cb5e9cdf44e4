package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// index writes the soak's page and returns it.
func index(t *testing.T, dir string) string {
	t.Helper()
	if err := WriteIndex(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, IndexFile))
	if err != nil {
		t.Fatal(err)
	}
	onlyMarkup(t, string(b))
	return string(b)
}

const ledger = `{"seed":1,"profile":"soak","nodes":3,"commit":"0123abc","duration":3600000000000,"verdict":"valid","operations":1000,"leader_changes":2,"faults":{"pause":3},"no_service":{"pause":[100000000,2000000000,300000000]}}
{"seed":2,"profile":"soak","nodes":5,"commit":"0123abc","duration":1800000000000,"verdict":"invalid","failed":["witness"],"operations":500,"leader_changes":1,"faults":{"pause":1,"stop":1},"no_service":{"pause":[1000000]},"dir":"run-2"}
`

func TestASoakOnOnePage(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "soak.jsonl", ledger)
	put(t, dir, "run-2/report.html", "")
	page := index(t, dir)
	if !strings.Contains(page, `<a href="run-2/report.html">2</a>`) {
		t.Error("no link to the report of the run that was kept")
	}
	text := strings.ReplaceAll(pageText(t, page), "\n", " ")
	for _, want := range []string{"invalid 1 of 2 runs are not valid.", "time under faults 1.50 h", "operations 1 500", "pause 4 4 100ms 2s", "stop 1 0", "soak (2)"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
}

func TestAnUnknownVerdictIsNoGoodOne(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "soak.jsonl", strings.Replace(ledger, `"invalid"`, `"whatever"`, 1)+`{"seed":3,"verd`)
	text := strings.ReplaceAll(pageText(t, index(t, dir)), "\n", " ")
	for _, want := range []string{"unknown 1 of 2 runs are not valid.", "line 3 cannot be read", "not kept"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q in %s", want, text)
		}
	}
}

func TestASoakThatHasNotBegun(t *testing.T) {
	if page := index(t, t.TempDir()); !strings.Contains(page, "No run yet.") || !strings.Contains(page, "soak.jsonl") {
		t.Error("it does not say that there is nothing")
	}
}
