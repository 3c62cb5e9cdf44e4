package resp

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// A client library that turns on CLIENT TRACKING at once and caches on its side: what
// it reads is never older than the answer, and no call of it hangs.
func TestRueidis(t *testing.T) {
	l := newFakeLimiter()
	s, addr := listen(t, Config{}, l)
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	throttle := func() int64 {
		reply, err := c.Do(ctx, c.B().Arbitrary("CL.THROTTLE").Keys("user:42").Args("15", "16", "86400").Build()).AsIntSlice()
		if err != nil || len(reply) != 5 {
			t.Fatalf("CL.THROTTLE: %v, %v", reply, err)
		}
		return reply[2]
	}
	if left := throttle(); left != 15 {
		t.Errorf("%d left, want 15", left)
	}
	if !s.clients()[0].tracks.Load() {
		t.Error("it does not track, and the test tests nothing")
	}

	// It wants to read in a transaction, which limitd does not have.
	for range 3 {
		if r := c.DoCache(ctx, c.B().Pttl().Key("user:42").Cache(), time.Minute); r.Error() == nil || ctx.Err() != nil {
			t.Fatalf("%v, %v", r, ctx.Err())
		}
		for _, r := range c.DoMultiCache(ctx, rueidis.CT(c.B().Pttl().Key("user:42").Cache(), time.Minute), rueidis.CT(c.B().Ttl().Key("b").Cache(), time.Minute)) {
			if r.Error() == nil || ctx.Err() != nil {
				t.Fatalf("%v, %v", r, ctx.Err())
			}
		}
	}

	// Without one, it caches the reply until it is told that it is stale: at once.
	ttl := func() int64 {
		t.Helper()
		r := c.DoCache(ctx, c.B().Pttl().Key("user:42").Cache().ToStaticTTL(), time.Minute)
		n, err := r.AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := ttl()
	l.mu.Lock()
	l.now += 1000e9
	l.mu.Unlock()
	eventually(t, "a second read is a new one", func() bool { return ttl() == before-1000e3 })
	if left := throttle(); left != 14 {
		t.Errorf("%d left, want 14", left)
	}
}
