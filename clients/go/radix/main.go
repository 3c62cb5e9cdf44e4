// Command radix drives radix with its default pool of four connections.
package main

import (
	"context"

	"github.com/mediocregopher/radix/v4"

	"limitd/clients/go/line"
)

func main() {
	addr, user, password := line.Address()
	ctx := context.Background()
	var client radix.Client
	// New connects: a node that is away for a moment is asked again by the next call.
	connect := func() (err error) {
		if client == nil {
			config := radix.PoolConfig{Dialer: radix.Dialer{AuthUser: user, AuthPass: password}}
			client, err = config.New(ctx, "tcp", addr)
			if err != nil {
				client = nil
			}
		}
		return err
	}
	line.Serve(line.Client{
		Module: "github.com/mediocregopher/radix/v4",
		Call: func(args ...string) (reply any, err error) {
			if err := connect(); err != nil {
				return nil, err
			}
			err = client.Do(ctx, radix.Cmd(&reply, args[0], args[1:]...))
			return reply, err
		},
		Pipe: func(n int, args ...string) ([]any, error) {
			if err := connect(); err != nil {
				return nil, err
			}
			replies := make([]any, n)
			pipe := radix.NewPipeline()
			for i := range replies {
				pipe.Append(radix.Cmd(&replies[i], args[0], args[1:]...))
			}
			return replies, client.Do(ctx, pipe)
		},
	})
}
