package resp

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/tidwall/redcon"
)

const (
	errNoAuth      = "NOAUTH Authentication required."
	errHelloNoAuth = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	errNoPass      = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	errWrongPass   = "WRONGPASS invalid username-password pair or user is disabled."
	errNoPermKey   = "NOPERM this user has no permissions to access one of the keys used as arguments"
)

// What a client that has not said who it is may send, as in Redis.
const (
	strictArgs     = 10
	strictArgBytes = 16384
)

// user is who the client is; nil before it has said so.
func (c *client) user() *User { return c.who.Load() }

// userName is the name of the client's user, as CLIENT LIST tells it.
func (c *client) userName() string {
	if u := c.user(); u != nil {
		return u.Name
	}
	return defaultUser
}

// become makes the client somebody, or with nil nobody.
func (c *client) become(u *User) {
	c.who.Store(u)
	c.free = u != nil && u.free()
	if c.s != nil {
		c.s.parser.strict = u == nil
	}
}

// forbids says why the client may not run the command; "" if it may.
func (c *client) forbids(cmd *command, args [][]byte) string {
	u := c.user()
	switch {
	case cmd.noAuth:
		return ""
	case u == nil:
		return errNoAuth
	case cmd.needs != 0 && cmd.needs&u.May == 0:
		return fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command", cmd.name)
	case u.Keys != nil && !u.reaches(cmd.keys(args)):
		return errNoPermKey
	}
	return ""
}

// refused answers a command that the client may not run.
func (c *client) refused(cmd *command, args [][]byte) bool {
	text := c.forbids(cmd, args)
	if text != "" {
		c.reject(cmd, text)
	}
	return text != ""
}

// auth is AUTH [user] password. While no passwords are configured, as in Redis, the
// default user is welcome with any, and nobody else is.
func auth(c *client, dst []byte, args [][]byte) []byte {
	name, password := []byte(defaultUser), args[len(args)-1]
	switch {
	case len(args) > 3:
		return redcon.AppendError(dst, errSyntax)
	case len(args) == 3:
		name = args[1]
	case len(c.srv.users) == 0:
		return redcon.AppendError(dst, errNoPass)
	}
	u := c.login(name, password)
	if u == nil {
		return redcon.AppendError(c.begin(), errWrongPass)
	}
	c.become(u)
	return redcon.AppendOK(dst)
}

// login finds the user, or nil after the time that a failed attempt costs. Before
// that time all replies so far have left, so begin is to be asked again.
func (c *client) login(name, password []byte) *User {
	if len(c.srv.users) == 0 {
		if string(name) == defaultUser {
			return anyone
		}
		return nil
	}
	u := c.srv.authenticate(name, password)
	if u == nil {
		c.srv.counters.failedLogins.Add(1)
		c.settle()
		c.turn.end()
		if c.flush() == nil && !c.srv.failures.wait(c.ip) {
			c.quit = errGuessing
		}
	}
	return u
}

// failures slows those who fail to authenticate: each failure costs its address
// twice as much time as the one before, up to maxPenalty, until it has not failed
// for forgiveAfter. Whoever gets it right never waits.
type failures struct {
	pause func(d time.Duration) // sleeps
	now   func() time.Time

	mu      sync.Mutex
	of      map[netip.Addr]failure
	waiting int // connections that are being slowed
}

type failure struct {
	count int
	last  time.Time
}

const (
	minPenalty   = 50 * time.Millisecond
	maxPenalty   = time.Second
	forgiveAfter = 10 * time.Second
	maxSlowed    = 256  // connections that wait at once; others are closed
	maxFailing   = 4096 // addresses that are remembered
)

// wait takes the time that a failure of the address costs. False: too many wait
// already, and the connection is to be closed.
func (f *failures) wait(ip netip.Addr) bool {
	d, ok := f.begin(ip)
	if !ok {
		return false
	}
	f.pause(d)
	f.mu.Lock()
	f.waiting--
	f.mu.Unlock()
	return true
}

func (f *failures) begin(ip netip.Addr) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting >= maxSlowed {
		return 0, false
	}
	f.waiting++
	now := f.now()
	was, known := f.of[ip]
	if known && now.Sub(was.last) >= forgiveAfter {
		was = failure{}
	}
	if !known && len(f.of) >= maxFailing {
		f.forget(now)
		if len(f.of) >= maxFailing {
			return maxPenalty, true
		}
	}
	f.of[ip] = failure{was.count + 1, now}
	return min(minPenalty<<min(was.count, 10), maxPenalty), true
}

// forget drops the addresses that are forgiven.
func (f *failures) forget(now time.Time) {
	for ip, was := range f.of {
		if now.Sub(was.last) >= forgiveAfter {
			delete(f.of, ip)
		}
	}
}

// mayNameKey says that the client may see the key.
func (c *client) mayNameKey(key []byte) bool { return c.free || c.user().reachesKey(key) }
