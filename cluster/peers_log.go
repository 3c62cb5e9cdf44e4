package cluster

import (
	"log/slog"
	"sync"
	"time"
)

// refusalLog writes a warning once per key and minute, so that a peer that tries
// again ten times a second does not fill the log.
type refusalLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	seen   map[string]time.Time
}

const (
	refusalEvery = time.Minute
	refusalKeys  = 256 // more are forgotten: strangers choose their names
)

func newRefusalLog(l *slog.Logger) *refusalLog {
	return &refusalLog{logger: l, seen: make(map[string]time.Time)}
}

func (r *refusalLog) warn(key, msg string, args ...any) {
	now := time.Now()
	r.mu.Lock()
	last, ok := r.seen[key]
	if ok && now.Sub(last) < refusalEvery {
		r.mu.Unlock()
		return
	}
	if len(r.seen) >= refusalKeys {
		clear(r.seen)
	}
	r.seen[key] = now
	r.mu.Unlock()
	r.logger.Warn(msg, args...)
}
