package limiter

import (
	"sync"

	"limitd/algo"
)

// Limits reads limit expressions and remembers them, so that one in use is read once.
// Its memory is bounded: it forgets what was not asked for while limitsKept others
// were. Its method may be used by many goroutines at once. The zero value is ready.
type Limits struct {
	mu         sync.RWMutex
	young, old map[string]algo.Limit
}

// limitsKept is how many expressions are kept at least; at most twice as many are.
const limitsKept = 2048

// Parse is [algo.Parse]. What is wrong is not remembered.
func (l *Limits) Parse(text []byte) (algo.Limit, error) {
	l.mu.RLock()
	limit, young := l.young[string(text)]
	known := young
	if !young {
		limit, known = l.old[string(text)]
	}
	l.mu.RUnlock()
	if young {
		return limit, nil
	}
	if !known {
		if len(text) > algo.MaxExpr {
			text = text[:algo.MaxExpr+1] // enough to be told that it is too long
		}
		var err error
		// Not under the lock: a time zone may be read from disk.
		if limit, err = algo.Parse(string(text)); err != nil {
			return algo.Limit{}, err
		}
	}
	return l.keep(text, limit), nil
}

// keep remembers a limit, and returns the one that is remembered: another caller may
// have read the same text meanwhile.
func (l *Limits) keep(text []byte, limit algo.Limit) algo.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, ok := l.young[string(text)]; ok {
		return first
	}
	if l.young == nil || len(l.young) >= limitsKept {
		l.young, l.old = make(map[string]algo.Limit, limitsKept), l.young
	}
	l.young[string(text)] = limit
	return limit
}
