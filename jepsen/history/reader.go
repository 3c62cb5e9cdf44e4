package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ReadEvents reads history.jsonl. Numbers of replies are int64: one that is none is an
// error.
func ReadEvents(dir string) ([]Event, error) {
	all, err := readLines[Event](dir, EventsFile)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Reply, err = exact(all[i].Reply); err != nil {
			return nil, fmt.Errorf("%s, line %d: reply: %w", filepath.Join(dir, EventsFile), i+1, err)
		}
	}
	return all, nil
}

// ReadHealth reads health.jsonl.
func ReadHealth(dir string) ([]Health, error) { return readLines[Health](dir, HealthFile) }

// ReadSamples reads samples.jsonl.
func ReadSamples(dir string) ([]Sample, error) { return readLines[Sample](dir, SamplesFile) }

// readLines reads a JSONL file of dir.
func readLines[T any](dir, file string) ([]T, error) {
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	d.UseNumber()
	for all := []T(nil); ; {
		var v T
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s, line %d: %w", filepath.Join(dir, file), len(all)+1, err)
		}
		all = append(all, v)
	}
}

// exact turns the numbers of a reply into int64.
func exact(v any) (any, error) {
	switch x := v.(type) {
	case json.Number:
		return x.Int64()
	case []any:
		for i := range x {
			var err error
			if x[i], err = exact(x[i]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
