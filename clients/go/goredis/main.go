// Command goredis drives go-redis as it comes: RESP3, a pool, and up to three retries.
package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"limitd/clients/go/line"
)

func main() {
	addr, user, password := line.Address()
	client := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: password})
	ctx := context.Background()
	line.Serve(line.Client{
		Module: "github.com/redis/go-redis/v9",
		Call: func(args ...string) (any, error) {
			return client.Do(ctx, list(args)...).Result()
		},
		Pipe: func(n int, args ...string) ([]any, error) {
			pipe := client.Pipeline()
			for range n {
				pipe.Do(ctx, list(args)...)
			}
			cmds, _ := pipe.Exec(ctx) // the first error, which its command has too
			replies := make([]any, len(cmds))
			for i, cmd := range cmds {
				var err error
				if replies[i], err = cmd.(*redis.Cmd).Result(); err != nil {
					replies[i] = err
				}
			}
			return replies, nil
		},
	})
}

func list(args []string) []any {
	l := make([]any, len(args))
	for i, arg := range args {
		l[i] = arg
	}
	return l
}
