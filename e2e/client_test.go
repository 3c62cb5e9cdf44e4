package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// reply is the reply of CL.THROTTLE: limited, limit, remaining, retry_after, reset_after.
type reply [5]int64

// client is one go-redis connection that never sends a command twice.
type client struct {
	t testing.TB
	*redis.Client
}

func dial(t testing.TB, address string) client {
	r := redis.NewClient(&redis.Options{
		Addr: address, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, Protocol: 2,
		DialTimeout: 2 * time.Second, ReadTimeout: 10 * time.Second,
		PoolSize: 10_000, // one is in use; after this many failed dials the pool would wait a second before the next
	})
	t.Cleanup(func() { r.Close() })
	return client{t, r}
}

// throttle calls CL.THROTTLE.
func (c client) throttle(key string, burst, count, period, quantity int64) (reply, error) {
	v, err := c.Do(context.Background(), "CL.THROTTLE", key, burst, count, period, quantity).Int64Slice()
	if err != nil {
		return reply{}, err
	}
	if len(v) != len(reply{}) {
		return reply{}, fmt.Errorf("CL.THROTTLE answered %v", v)
	}
	return reply(v), nil
}

// mustThrottle calls CL.THROTTLE and repeats it while the answer is certainly "not charged".
func (c client) mustThrottle(key string, burst, count, period, quantity int64) reply {
	c.t.Helper()
	var r reply
	began := time.Now()
	eventually(c.t, 20*time.Second, "an answer to CL.THROTTLE", func() bool {
		var err error
		r, err = c.throttle(key, burst, count, period, quantity)
		if code(err) == "INDOUBT" && !machine.calm(began) {
			c.t.Skipf("NOT TESTED: this machine stood still, and a call of which all depends is in doubt (%v)", err)
		}
		if err != nil && !notCharged(err) {
			c.t.Fatalf("CL.THROTTLE %s: %v", key, err)
		}
		return err == nil
	})
	return r
}

// info is INFO as a map; empty if the node does not answer.
func (c client) info() map[string]string {
	text, err := c.Do(context.Background(), "INFO").Text()
	fields := map[string]string{}
	if err != nil {
		return fields
	}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// contact is how long ago this node heard from another one, by RL.CLUSTER NODES; -1 if it does not say.
func (c client) contact(id string) time.Duration {
	rows, err := c.Do(context.Background(), "RL.CLUSTER", "NODES").Slice()
	if err != nil {
		return -1
	}
	for _, row := range rows {
		fields := map[any]any{}
		for i, flat := 0, row.([]any); i+1 < len(flat); i += 2 {
			fields[flat[i]] = flat[i+1]
		}
		if fields["id"] == id {
			return time.Duration(fields["contact_ms"].(int64)) * time.Millisecond
		}
	}
	return -1
}

// hashes is RL.HASH as index to hash, and the newest index.
func (c client) hashes() (map[int64]string, int64) {
	v, err := c.Do(context.Background(), "RL.HASH").Slice()
	points, newest := map[int64]string{}, int64(0)
	if err != nil {
		return points, 0
	}
	for _, p := range v {
		pair := p.([]any)
		newest = pair[0].(int64)
		points[newest] = pair[1].(string)
	}
	return points, newest
}

// code is the first word of an error that the server answered; empty if the
// error is not an answer (the connection broke).
func code(err error) string {
	var answered redis.Error
	if !errors.As(err, &answered) {
		return ""
	}
	word, _, _ := strings.Cut(answered.Error(), " ")
	return word
}

// notCharged says that the call had certainly no effect.
func notCharged(err error) bool {
	switch code(err) {
	case "TRYAGAIN", "CLUSTERDOWN", "LOADING", "OOM":
		return true
	}
	return false
}

// redisCLI asks with redis-cli.
func redisCLI(t testing.TB, port string, args ...string) string {
	t.Helper()
	out, err := exec.Command(tools.redisCLI, append([]string{"-p", port}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// python asks with python3-redis; the reply comes as Python prints it.
func python(t testing.TB, port string, args ...string) string {
	t.Helper()
	script := "import redis, sys; print(redis.Redis(port=int(sys.argv[1])).execute_command(*sys.argv[2:]))"
	out, err := exec.Command(tools.python, append([]string{"-c", script, port}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("python3-redis %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// portOf is the port of an address.
func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
