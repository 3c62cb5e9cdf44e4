package cluster

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// raftLogger gives raft's log to slog. Raft reports its daily business as Info and
// the same trouble at every attempt; here the business is Debug, and the same
// message comes once in a while.
func raftLogger(l *slog.Logger) hclog.Logger {
	out := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Off, Output: io.Discard})
	out.RegisterSink(&raftSink{log: l, last: map[string]time.Time{}})
	return out
}

// raftSink implements hclog.SinkAdapter.
type raftSink struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]time.Time // by message
}

const repeatEvery = 10 * time.Second

// ordinary is what raft warns of though all is well: a member that has not got its
// first entries yet, a follower that is being caught up, a peer that hung up.
var ordinary = map[string]bool{
	"no known peers, aborting election":          true,
	"failed to get previous log":                 true,
	"appendEntries rejected, sending older logs": true,
	"failed to decode incoming command":          true,
	"failed to flush response":                   true,
}

func (s *raftSink) Accept(name string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if level >= hclog.Warn && !ordinary[msg] { // what raft calls an error is mostly a peer that is away
		to = slog.LevelWarn
	}
	if !s.log.Enabled(context.Background(), to) || to > slog.LevelDebug && s.repeated(msg) {
		return
	}
	attrs := make([]any, 0, len(args))
	for _, a := range args {
		switch f := a.(type) {
		case hclog.Format:
			a = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		case fmt.Stringer:
			a = f.String()
		}
		attrs = append(attrs, a)
	}
	s.log.Log(context.Background(), to, "raft: "+msg, attrs...)
}

// repeated says that the message was logged a moment ago.
func (s *raftSink) repeated(msg string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.last[msg]) < repeatEvery {
		return true
	}
	s.last[msg] = now
	return false
}
