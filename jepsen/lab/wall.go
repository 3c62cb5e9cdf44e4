package lab

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// wallClock is the offset of one node's wall clock.
type wallClock struct {
	file string

	mu   sync.Mutex
	mem  []byte
	stop func()
}

func newWallClock(file string) (*wallClock, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", file, err)
	}
	return &wallClock{file: file, mem: mem}, nil
}

func (c *wallClock) jump(d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := int64(binary.LittleEndian.Uint64(c.mem))
	binary.LittleEndian.PutUint64(c.mem, uint64(now+int64(d)))
	return nil
}

// drift lets the clock run rate times as fast as it should, until the next call.
func (c *wallClock) drift(rate float64) {
	c.mu.Lock()
	stop := c.stop
	c.stop = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	if rate == 1 {
		return
	}
	const step = 10 * time.Millisecond
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(step)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				c.jump(time.Duration((rate - 1) * float64(step)))
			}
		}
	}()
	c.mu.Lock()
	c.stop = sync.OnceFunc(func() { close(end); <-ended })
	c.mu.Unlock()
}
