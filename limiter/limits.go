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
	limit, ok := l.young[string(text)]
	l.mu.RUnlock()
	if ok {
		return limit, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit, ok = l.young[string(text)]; ok {
		return limit, nil
	}
	if limit, ok = l.old[string(text)]; !ok {
		if len(text) > algo.MaxExpr {
			text = text[:algo.MaxExpr+1] // enough to be told that it is too long
		}
		var err error
		if limit, err = algo.Parse(string(text)); err != nil {
			return algo.Limit{}, err
		}
	}
	if l.young == nil || len(l.young) >= limitsKept {
		l.young, l.old = make(map[string]algo.Limit, limitsKept), l.young
	}
	l.young[string(text)] = limit
	return limit, nil
}
