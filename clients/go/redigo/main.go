// Command redigo drives redigo with its pool, as its documentation shows it.
package main

import (
	"github.com/gomodule/redigo/redis"

	"limitd/clients/go/line"
)

func main() {
	addr, user, password := line.Address()
	pool := &redis.Pool{
		MaxIdle: 3,
		Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", addr, redis.DialUsername(user), redis.DialPassword(password))
		},
	}
	line.Serve(line.Client{
		Module: "github.com/gomodule/redigo",
		Call: func(args ...string) (any, error) {
			conn := pool.Get()
			defer conn.Close()
			return conn.Do(args[0], redis.Args{}.AddFlat(args[1:])...)
		},
		Pipe: func(n int, args ...string) ([]any, error) {
			conn := pool.Get()
			defer conn.Close()
			for range n {
				if err := conn.Send(args[0], redis.Args{}.AddFlat(args[1:])...); err != nil {
					return nil, err
				}
			}
			if err := conn.Flush(); err != nil {
				return nil, err
			}
			replies := make([]any, n)
			for i := range replies {
				var err error
				if replies[i], err = conn.Receive(); err != nil {
					replies[i] = err
				}
			}
			return replies, nil
		},
	})
}
