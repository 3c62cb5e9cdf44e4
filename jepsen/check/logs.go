package check

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// alarms are what no node may print, whatever is done to it.
var alarms = []string{"panic:", "fatal error:", "DATA RACE", "[signal SIG", "has diverged from the others"}

// checkLogs: no line of log/*.log holds one of the alarms. It trusts that the logs are
// whole.
func checkLogs(e *evidence, r *result) {
	files, _ := filepath.Glob(filepath.Join(e.dir, "log", "*.log"))
	for _, f := range files {
		if err := scanLog(f, r); err != nil {
			r.open(Example{Says: err.Error()})
		}
	}
}

func scanLog(file string, r *result) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	node := strings.TrimSuffix(filepath.Base(file), ".log")
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for n := 1; in.Scan(); n++ {
		r.Checked++
		for _, a := range alarms {
			if strings.Contains(in.Text(), a) {
				text := in.Text()
				r.bad(Example{Says: fmt.Sprintf("%s printed: %s", node, text[:min(len(text), 300)]), Node: node, Rows: []string{fmt.Sprintf("log/%s.log:%d", node, n)}})
				break
			}
		}
	}
	return in.Err()
}
