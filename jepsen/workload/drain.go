package workload

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Settle is the end of a run, when all is healed: within d every node must decide a
// call on every key that the run always uses, and all must come to the same hash at
// the same newest index. It says what does not.
func Settle(d Dialer, nodes []string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	for _, n := range nodes {
		all.Go(func() {
			for _, k := range fixed() {
				err := until(deadline, func() error {
					_, err := d.Ask(n, k.throttle(0)...)
					return err
				})
				if err != nil {
					mu.Lock()
					failed = errors.Join(failed, fmt.Errorf("%s does not answer for %s: %w", n, k.Name, err))
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	if failed != nil {
		return failed
	}
	return until(deadline, func() error { return sameHash(d, nodes) })
}

// until tries until it works or the time is over.
func until(deadline time.Time, try func() error) error {
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// sameHash compares RL.HASH of the nodes. An idle leader moves the newest index every
// five seconds, so a difference in that alone is tried again.
func sameHash(d Dialer, nodes []string) error {
	var first any
	for i, n := range nodes {
		points, err := d.Ask(n, "RL.HASH")
		if err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
		list, _ := points.([]any)
		if len(list) == 0 {
			return fmt.Errorf("%s has no hash", n)
		}
		newest := list[len(list)-1]
		if i == 0 {
			first = newest
		} else if fmt.Sprint(first) != fmt.Sprint(newest) {
			return fmt.Errorf("newest index and hash: %v on %s, %v on %s", first, nodes[0], newest, n)
		}
	}
	return nil
}
