package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"limitd/jepsen/history"
)

// readJSON reads a file of the run. If that cannot be done it notes the lack, with
// what follows from it, and returns false.
func (r *run) readJSON(file, without string, v any) bool {
	err := history.ReadJSON(r.dir, file, v)
	if err != nil {
		r.lack(file, trouble(err)+"; "+without)
	}
	return err == nil
}

// readLines reads what can be read of a file with a JSON value a line. A process that
// was killed leaves half a line at the end.
func readLines[T any](r *run, file, without string) (all []T) {
	f, err := os.Open(filepath.Join(r.dir, file))
	if err != nil {
		r.lack(file, trouble(err)+"; "+without)
		return nil
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	bad, first := 0, ""
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var v T
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			if e := d.Decode(&v); e == nil {
				all = append(all, v)
			} else if bad++; bad == 1 {
				first = fmt.Sprintf("line %d cannot be read (%v)", n, e)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				bad, first = bad+1, err.Error()
			}
			break
		}
	}
	if bad > 0 {
		r.lack(file, fmt.Sprintf("%s; %s of %s lines are left out", first, count(int64(bad)), count(int64(bad+len(all)))))
	} else if len(all) == 0 {
		r.lack(file, "empty; "+without)
	}
	return all
}

// trouble says in few words why a file cannot be read.
func trouble(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "missing"
	case errors.Is(err, fs.ErrPermission):
		return "not readable"
	}
	return "damaged (" + err.Error() + ")"
}
