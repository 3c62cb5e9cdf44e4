package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"limitd/proc"
)

// clockTick is the unit of CPU times in /proc, which Linux fixes for programs at 1/100 s.
const clockTick = 10 * time.Millisecond

// cpuTime is the processor time that the process has used, in user and system mode.
func cpuTime(p *proc.Process) (time.Duration, error) {
	file := fmt.Sprintf("/proc/%d/stat", p.PID())
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name in parentheses may hold blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: %q", file, text)
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// rssAnon is the memory of the process that no file backs, in bytes.
func rssAnon(p *proc.Process) (int64, error) {
	file := fmt.Sprintf("/proc/%d/status", p.PID())
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if kb, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no RssAnon", file)
}
