package report

import (
	"flag"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/run.txt anew")

// golden is a copy of the small run that was made by hand.
func golden(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/run")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "porcupine/hot-0-exact.html", "<!doctype html>")
	return dir
}

func put(t *testing.T, dir, file, text string) {
	t.Helper()
	file = filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// made writes the report and returns it.
func made(t *testing.T, dir string) string {
	t.Helper()
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	onlyMarkup(t, string(b))
	return string(b)
}

// piece is a tag, without its brackets, and the text behind it.
type piece struct{ tag, text string }

// pieces takes a page apart, without its style sheet. A bracket that belongs to no
// tag is an error.
func pieces(t *testing.T, page string) (all []piece) {
	t.Helper()
	before, rest, _ := strings.Cut(page, "<style>")
	_, after, _ := strings.Cut(rest, "</style>")
	for _, p := range strings.Split(before+after, "<")[1:] {
		tag, text, ok := strings.Cut(p, ">")
		if !ok || strings.Contains(text, ">") {
			t.Errorf("markup that is none: %q", p[:min(len(p), 80)])
		}
		all = append(all, piece{tag, text})
	}
	return all
}

// pageText is what the page says, a line for each piece of text.
func pageText(t *testing.T, page string) string {
	t.Helper()
	var b strings.Builder
	for _, p := range pieces(t, page) {
		if text := strings.Join(strings.Fields(html.UnescapeString(p.text)), " "); text != "" {
			b.WriteString(text + "\n")
		}
	}
	return b.String()
}

// What the templates have. Nothing in the files of a run may add to it.
var (
	elements = words(`html head meta title style body main header section h1 h2 h3 h4 p span strong code pre small a abbr ul li dl dt dd div br
		table thead tbody tr th td details summary article figure figcaption svg path rect text line`)
	attributes = words(`lang charset name content class id href title data-name role aria-hidden aria-label d x y dy x1 x2 y1 y2 width height
		transform viewBox`)
	scheme = regexp.MustCompile(`^[a-zA-Z]+:|//`)
)

// onlyMarkup holds a page against the elements and attributes of its templates: so
// nothing is loaded, and nothing is run.
func onlyMarkup(t *testing.T, page string) {
	t.Helper()
	for _, p := range pieces(t, page) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(p.tag, "/"), "/"), " ")
		if p.tag != "!doctype html" && !slices.Contains(elements, name) {
			t.Errorf("element <%s>", p.tag)
		}
		for rest != "" && p.tag != "!doctype html" {
			attribute, value, ok := strings.Cut(rest, `="`)
			if value, rest, _ = strings.Cut(value, `"`); !ok || !slices.Contains(attributes, strings.TrimSpace(attribute)) {
				t.Errorf("attribute %q of <%s>", attribute, p.tag)
			}
			if strings.TrimSpace(attribute) == "href" && scheme.MatchString(value) {
				t.Errorf("a link out of the directory: <%s>", p.tag)
			}
		}
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("a value was not safe where it stands")
	}
}

// The page of the golden run, as a reader without pictures has it.
func TestGoldenRun(t *testing.T) {
	text := pageText(t, made(t, golden(t)))
	const file = "testdata/run.txt"
	if *update {
		put(t, ".", file, text)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		g, w := strings.Split(text, "\n"), strings.Split(string(want), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Fatalf("line %d of the text is\n%s\nwant\n%s\n(go test -update writes %s)", i+1, g[i], w[i], file)
			}
		}
		t.Fatalf("%d lines, want %d", len(g), len(w))
	}
}

func TestTheReportHasWhatAReaderNeeds(t *testing.T) {
	page := made(t, golden(t))
	for _, want := range []string{
		`<span class="badge invalid">invalid</span>`,
		`<pre class="replay">go run ./jepsen/cmd/jepsen run -seed 7`,
		"slow-cpu: no cgroup v1 is mounted",
		`this key: <a href="porcupine/hot-0-exact.html">`,
		`<a href="#case-durability">`, `<article id="case-durability">`,
		"trace/n3.jsonl:2, at 2.104 s; calls of other keys left out: 1", "<pre>trace/n9.jsonl:1</pre>", "<pre>panic: this line",
		"panic: this line has the time of the one before",
		"kill-leader on n1 (SIGKILL) from 1.000 s to 2.000 s",
		`<rect class="band k0"`, `<rect class="band k1"`,
		`class="leader"`, `class="candidate"`, `class="down"`, `class="decided"`,
		"term 2", "term 4",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if n := strings.Count(page, `<tr class="cited">`); n != 2 {
		t.Errorf("%d operations are marked, want the 2 that the counter-example names", n)
	}
	for k := range outcomes {
		title := "Latency of “" + outcomeNames[k] + "”"
		if !strings.Contains(page, title) {
			t.Errorf("there is no plot %s", title)
		}
	}
}

// A plot without a unit or a name on each axis tells nothing.
func TestEveryPlotHasItsAxes(t *testing.T) {
	r := load(golden(t))
	for _, p := range newPage(r).Panels {
		if p.Missing != "" {
			t.Errorf("%s: %s", p.Title, p.Missing)
			continue
		}
		if p.Axis == "" && !p.Lanes {
			t.Errorf("%s: no name of the vertical axis", p.Title)
		}
		if len(p.YTicks) < 2 || len(p.XTicks) < 2 {
			t.Errorf("%s: %d and %d ticks", p.Title, len(p.YTicks), len(p.XTicks))
		}
		for _, x := range p.XTicks {
			if !strings.HasSuffix(x.Label, " s") || x.At < 0 || x.At > plotWidth+.1 {
				t.Errorf("%s: tick %+v", p.Title, x)
			}
		}
		for _, y := range p.YTicks {
			if y.Label == "" || y.At < -.1 || y.At > p.Height+.1 {
				t.Errorf("%s: tick %+v of %v", p.Title, y, p.Height)
			}
		}
	}
}
