package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Files of a run directory.
const (
	RunFile      = "run.json"
	EventsFile   = "history.jsonl"
	HealthFile   = "health.jsonl"
	SamplesFile  = "samples.jsonl"
	ScheduleFile = "schedule.jsonl"
	VerdictFile  = "verdict.json"
	EDNFile      = "history.edn"
	SetFile      = "set.edn"
	CounterDir   = "counter" // an .edn for each key that is a counter
)

// TraceFile is where a node's trace lies in a run directory.
func TraceFile(dir, node string) string { return filepath.Join(dir, "trace", node+".jsonl") }

// LogFile is where a node's output lies in a run directory.
func LogFile(dir, node string) string { return filepath.Join(dir, "log", node+".log") }

// WriteJSON writes a value as a file of dir.
func WriteJSON(dir, file string, v any) error {
	b, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(filepath.Join(dir, file), append(b, '\n'), 0o644)
}

// ReadJSON reads a file of dir that WriteJSON wrote.
func ReadJSON(dir, file string, v any) error {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, file), err)
	}
	return nil
}
