package resp

import (
	"bufio"
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"limitd/limiter"
)

var update = flag.Bool("update", false, "write the replies into the golden files")

// A golden file is a session: requests as inline commands behind "> ", the
// replies byte by byte behind "< ", a line for each CRLF. Lines of # are
// comments; "@ 1500ms" moves the clock; "! key STATUS" makes calls on a key fail.
func TestGoldenSessions(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.session")
	if len(files) < 3 {
		t.Fatalf("golden files are missing: %q", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, want)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("replies changed; see with -update and git diff. First difference:\n%s", firstDifference(got, want))
			}
		})
	}
}

// replay runs the requests of a session and returns it with the replies given.
func replay(t *testing.T, session []byte) []byte {
	s := newSession(t, Config{Version: "1.2.3", MaxMemory: 1 << 30})
	var out bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(session))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "<") {
			continue
		}
		out.WriteString(line + "\n")
		switch rest := strings.TrimPrefix(line[min(1, len(line)):], " "); {
		case strings.HasPrefix(line, "@"):
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			s.limiter.now += int64(d)
		case strings.HasPrefix(line, "!"):
			key, code, _ := strings.Cut(rest, " ")
			for st := limiter.OK; st <= limiter.Loading; st++ {
				if strings.HasPrefix(st.Error(), code+" ") {
					s.limiter.status[key] = st
				}
			}
		case strings.HasPrefix(line, ">"):
			p := parser{bounds: s.srv.pool.bounds}
			args, err := p.split([]byte(rest), nil)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			var words []string
			for _, a := range args {
				words = append(words, string(a))
			}
			reply := s.do(words...)
			for l := range strings.SplitSeq(strings.TrimSuffix(reply, "\r\n"), "\r\n") {
				q := strconv.QuoteToASCII(l)
				l = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
				if strings.HasSuffix(l, " ") { // visible, and safe from editors
					l = l[:len(l)-1] + `\x20`
				}
				out.WriteString(strings.TrimRight("< "+l, " ") + "\n")
			}
		}
	}
	return out.Bytes()
}

func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			from := max(0, i-3)
			return "got\n" + strings.Join(g[from:i+1], "\n") + "\nwant\n" + strings.Join(w[from:i+1], "\n")
		}
	}
	return "one is the beginning of the other"
}
