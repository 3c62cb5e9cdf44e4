package resp

import (
	"strings"
	"testing"

	"limitd/limiter"
)

// tags notes the tags of the calls that it passes on.
type tags struct {
	Limiter
	seen []uint64
}

func (l *tags) Do(c *limiter.Chunk) {
	for i := range c.Calls {
		l.seen = append(l.seen, c.Calls[i].Tag)
	}
	l.Limiter.Do(c)
}

func TestATagIsForTheNextCallAlone(t *testing.T) {
	l := &tags{Limiter: newFakeLimiter()}
	cfg := DefaultConfig()
	cfg.Trace = true
	_, addr := listen(t, cfg, l)
	c := dial(t, addr)
	throttle := string(commandBytes("CL.THROTTLE", "k", "3", "1", "60"))
	c.Write([]byte(string(commandBytes("RL.TRACE", "18446744073709551615")) + throttle + throttle))
	const allowed = "*5\r\n:0\r\n:4\r\n:3\r\n:-1\r\n:60\r\n"
	expect(t, c, "+OK\r\n"+allowed+strings.NewReplacer(":3\r", ":2\r", ":60", ":120").Replace(allowed))
	if len(l.seen) != 2 || l.seen[0] != 1<<64-1 || l.seen[1] != 0 {
		t.Errorf("tags %d", l.seen)
	}
	for _, bad := range []string{"0", "-1", "x", "18446744073709551616"} {
		c.Write(commandBytes("RL.TRACE", bad))
		expect(t, c, "-ERR tag: want a number from 1 to 18446744073709551615, not "+bad+"\r\n")
	}
}

func TestOnlyANodeWithATraceKnowsTags(t *testing.T) {
	_, addr := listen(t, DefaultConfig(), newFakeLimiter())
	c := dial(t, addr)
	c.Write(commandBytes("RL.TRACE", "1"))
	expect(t, c, "-ERR unknown command 'RL.TRACE'")
}
