package sim

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// diary keeps the newest lines of what is logged. It is written to no file: a run
// that fails shows it.
type diary struct {
	mu    sync.Mutex
	lines []string
}

const diaryLines = 20_000

// Write implements io.Writer, a line at a time.
func (d *diary) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lines) >= 2*diaryLines {
		d.lines = append([]string(nil), d.lines[diaryLines:]...)
	}
	d.lines = append(d.lines, string(b))
	return len(b), nil
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, "")
}

// log writes a line on what is done to the nodes.
func (w *world) log(format string, args ...any) {
	fmt.Fprintf(&w.diary, "time=%s sim: %s\n", time.Now().Format("2006-01-02T15:04:05.000Z07:00"), fmt.Sprintf(format, args...))
}

var particular = regexp.MustCompile(`/\S+|[0-9]\S*|n[0-9]+-\S+`)

// reason is an error without what is particular to this time.
func reason(err error) string { return particular.ReplaceAllString(err.Error(), "…") }
