package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Read calls fn for each row of a trace, in order. A line that ends without a newline
// was cut off with the process that wrote it: it is left out if it is the file's last
// one or the next process's rows begin behind it. Whatever else cannot be read is an
// error that names the file and the line.
func Read(file string, fn func(Row) error) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // with a line that was cut off, or none
		}
		if err != nil {
			return fmt.Errorf("trace %s: %w", file, err)
		}
		row, err := parse(line)
		if err != nil {
			return fmt.Errorf("trace %s, line %d: %w", file, n, err)
		}
		if err := fn(row); err != nil {
			return err
		}
	}
}

// parse reads a line, behind what a killed process left of its last one.
func parse(line []byte) (Row, error) {
	var r Row
	err := json.Unmarshal(line, &r)
	if err == nil {
		if r.Kind == "" || r.Node == "" {
			return r, errors.New("no row: kind or node is missing")
		}
		return r, nil
	}
	if at := bytes.LastIndex(line, []byte(`{"kind":"start"`)); at > 0 {
		var next Row
		if json.Unmarshal(line[at:], &next) == nil {
			return next, nil
		}
	}
	return r, err
}
