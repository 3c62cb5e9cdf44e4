package resp

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A client library of which nothing is known but that it speaks to Redis.
func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			_, addr := listen(t, Config{}, newFakeLimiter())
			ctx := context.Background()
			c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol, ClientName: "app", DB: 3})
			defer c.Close()
			check := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			reply, err := c.Do(ctx, "CL.THROTTLE", "user:42", 15, 16, 86400, 1).Int64Slice()
			check("CL.THROTTLE", err)
			if !slices.Equal(reply, []int64{0, 16, 15, -1, 5400}) {
				t.Errorf("CL.THROTTLE: %v", reply)
			}
			pipe := c.Pipeline()
			var calls []*redis.Cmd
			for range 100 {
				calls = append(calls, pipe.Do(ctx, "CL.THROTTLE", "user:43", 49, 1, 86400))
			}
			_, err = pipe.Exec(ctx)
			check("pipeline", err)
			allowed := 0
			for _, call := range calls {
				if r, err := call.Int64Slice(); err == nil && r[0] == 0 {
					allowed++
				}
			}
			if allowed != 50 {
				t.Errorf("%d of a pipeline were allowed, want 50", allowed)
			}
			name, err := c.ClientGetName(ctx).Result()
			check("CLIENT GETNAME", err)
			config, err := c.ConfigGet(ctx, "max*").Result()
			check("CONFIG GET", err)
			info, err := c.InfoMap(ctx, "raft", "keyspace").Result()
			check("INFO", err)
			if name != "app" || config["maxclients"] != "20000" || info["Raft"]["raft_role"] != "follower" || info["Keyspace"]["db3"] == "" {
				t.Errorf("%q, %v, %v", name, config, info)
			}
			keys, _, err := c.Scan(ctx, 0, "user:*", 100).Result()
			check("SCAN", err)
			n, err := c.Exists(ctx, keys...).Result()
			check("EXISTS", err)
			if len(keys) != 2 || n != 2 {
				t.Errorf("%q, %d exist", keys, n)
			}
			commands, err := c.Command(ctx).Result()
			check("COMMAND", err)
			if th := commands["cl.throttle"]; th == nil || th.Arity != -5 || th.FirstKeyPos != 1 || th.LastKeyPos != 1 || th.ReadOnly {
				t.Errorf("COMMAND: %+v", th)
			}
			got, err := c.CommandGetKeys(ctx, "CL.THROTTLE", "user:42", 1, 1, 1).Result()
			check("COMMAND GETKEYS", err)
			ttl, err := c.TTL(ctx, "user:42").Result()
			check("TTL", err)
			if !slices.Equal(got, []string{"user:42"}) || ttl.Seconds() != 5400 {
				t.Errorf("%q, %v", got, ttl)
			}
			check("FLUSHDB", c.FlushDB(ctx).Err())
			if err := c.Do(ctx, "CL.THROTTLE", "k", "x", 1, 1).Err(); err == nil || err.Error() != "ERR max_burst: Couldn't parse as integer: x" {
				t.Errorf("error: %v", err)
			}
		})
	}
}
