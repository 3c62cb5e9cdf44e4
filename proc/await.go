package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// awaitEvery is the time between two looks.
const awaitEvery = 10 * time.Millisecond

type permanent struct{ error }

// Permanent makes an error one that no waiting will heal: [Await] does not try again.
func Permanent(err error) error { return permanent{err} }

// Await calls try until it returns nil, at most for the given time; what says in errors
// what is not so. It fails at once when try returns a [Permanent] error, or one of the
// processes has died, and then with the end of its log.
func Await(ctx context.Context, what string, limit time.Duration, try func(context.Context) error, alive ...*Process) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for {
		last := try(ctx)
		if last == nil {
			return nil
		}
		if errors.As(last, &permanent{}) {
			return fmt.Errorf("%s: %w", what, last)
		}
		for _, p := range alive {
			if !p.Running() {
				return p.died()
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), last))
		case <-tick.C:
		}
	}
}

// FreeAddrs returns n addresses of loopback, host:port, that nobody listens on. All are
// held while they are picked, so that they differ.
func FreeAddrs(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer ln.Close()
		addrs[i] = ln.Addr().String()
	}
	return addrs, nil
}
