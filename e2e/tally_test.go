package e2e

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// tally counts how calls ended.
type tally struct {
	allowed, denied int64
	sure            map[string]int64 // certainly not charged, by code
	inDoubt         int64            // -INDOUBT
	broken          int64            // the connection broke after the call was sent: nobody knows
	strange         []string         // anything else
	slowest         time.Duration
}

func (a *tally) add(b tally) {
	a.allowed += b.allowed
	a.denied += b.denied
	a.inDoubt += b.inDoubt
	a.broken += b.broken
	a.strange = append(a.strange, b.strange...)
	a.slowest = max(a.slowest, b.slowest)
	for code, n := range b.sure {
		a.count(code, n)
	}
}

func (a *tally) count(code string, n int64) {
	if a.sure == nil {
		a.sure = map[string]int64{}
	}
	a.sure[code] += n
}

func (a tally) String() string {
	return fmt.Sprintf("allowed %d, denied %d, not charged %v, in doubt %d, broken %d, slowest %v, strange %q",
		a.allowed, a.denied, a.sure, a.inDoubt, a.broken, a.slowest, a.strange)
}

// call makes one call and counts how it ended.
func (a *tally) call(c client, key string, limit int64) (answered bool) {
	began := time.Now()
	r, err := c.throttle(key, limit-1, 1, 3600, 1) // one unit per hour: nothing comes back during a test
	a.slowest = max(a.slowest, time.Since(began))
	switch {
	case err == nil && r[0] == 0:
		a.allowed++
	case err == nil:
		a.denied++
	case code(err) == "INDOUBT":
		a.inDoubt++
	case notCharged(err):
		a.count(code(err), 1)
	case neverConnected(err):
		a.count("no connection", 1)
	case code(err) == "":
		a.broken++
	default:
		a.strange = append(a.strange, err.Error())
	}
	return err == nil
}

// neverConnected says that the call was not sent because nobody listens there.
func neverConnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// load is clients that call one key until they are stopped, each with a connection of its own.
type load struct {
	stop  chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex
	total map[string]*tally // by the address called
}

// startLoad starts perNode clients for each address.
func startLoad(t testing.TB, key string, limit int64, perNode int, addresses ...string) *load {
	l := &load{stop: make(chan struct{}), total: map[string]*tally{}}
	for _, address := range addresses {
		l.total[address] = &tally{}
	}
	for _, address := range addresses {
		for range perNode {
			c := dial(t, address)
			l.wg.Go(func() {
				for {
					var one tally
					ok := one.call(c, key, limit)
					l.mu.Lock()
					l.total[address].add(one)
					l.mu.Unlock()
					select {
					case <-l.stop:
						return
					default:
					}
					if !ok && one.sure["no connection"] > 0 {
						time.Sleep(5 * time.Millisecond) // nobody listens there: do not spin
					}
				}
			})
		}
	}
	return l
}

// answers is how many decisions were given so far.
func (l *load) answers() int64 {
	all := l.sum()
	return all.allowed + all.denied
}

func (l *load) sum() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all tally
	for _, one := range l.total {
		all.add(*one)
	}
	return all
}

// end stops the clients and returns their tallies by address.
func (l *load) end() map[string]*tally {
	close(l.stop)
	l.wg.Wait()
	return l.total
}

// checkCount compares what is left of the limit with how the calls ended.
func checkCount(t testing.TB, c client, key string, limit int64, all tally) {
	t.Helper()
	if all.allowed > limit {
		t.Errorf("%d calls were allowed under a limit of %d", all.allowed, limit)
	}
	left := c.mustThrottle(key, limit-1, 1, 3600, 0)[2]
	most := limit - all.allowed
	least := max(0, most-all.inDoubt-all.broken)
	if left > most || left < least {
		t.Errorf("%d left, want %d to %d (limit %d; %v)", left, least, most, limit, all)
	}
}
