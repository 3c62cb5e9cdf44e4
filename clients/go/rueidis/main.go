// Command rueidis drives rueidis with its default options: RESP3, pipelining by
// itself, and client side caching, which begins with CLIENT TRACKING.
package main

import (
	"context"

	"github.com/redis/rueidis"

	"limitd/clients/go/line"
)

func main() {
	addr, user, password := line.Address()
	var client rueidis.Client
	// NewClient connects: a node that is away for a moment is asked again by the next call.
	connect := func() (err error) {
		if client == nil {
			client, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, Username: user, Password: password})
			if err != nil {
				client = nil
			}
		}
		return err
	}
	command := func(args []string) rueidis.Completed {
		return client.B().Arbitrary(args[0]).Keys(args[1:min(2, len(args))]...).Args(args[min(2, len(args)):]...).Build()
	}
	ctx := context.Background()
	line.Serve(line.Client{
		Module: "github.com/redis/rueidis",
		Call: func(args ...string) (any, error) {
			if err := connect(); err != nil {
				return nil, err
			}
			return client.Do(ctx, command(args)).ToAny()
		},
		Pipe: func(n int, args ...string) ([]any, error) {
			if err := connect(); err != nil {
				return nil, err
			}
			var cmds rueidis.Commands
			for range n {
				cmds = append(cmds, command(args))
			}
			replies := make([]any, n)
			for i, result := range client.DoMulti(ctx, cmds...) {
				var err error
				if replies[i], err = result.ToAny(); err != nil {
					replies[i] = err
				}
			}
			return replies, nil
		},
	})
}
