package resp

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"
)

var (
	errQuit  = errors.New("the client said QUIT")
	errAlien = errors.New("not a Redis client: HTTP")

	errGuessing = errors.New("too many clients fail to authenticate")
)

// client is one connection's session: what its commands may change about it, and
// the execution of commands. It knows nothing of sockets.
type client struct {
	srv *Server
	out io.Writer // takes the replies of a chunk, in one write mostly
	s   *scratch  // present while a chunk is worked on

	id          int64
	addr, laddr string
	ip          netip.Addr // of the client; not valid: not an address
	since       time.Time

	// Written by the connection's goroutine, read by CLIENT LIST of others.
	proto   atomic.Uint32           // 2 or 3
	db      atomic.Uint32           // namespace, 0 to 15
	used    atomic.Int64            // when its last chunk was answered, ns since the start of the server
	command atomic.Pointer[command] // the latest
	who     atomic.Pointer[User]    // nil: has not said so
	tracks  atomic.Bool             // CLIENT TRACKING is on
	mu      sync.Mutex
	name    string // under mu, as the next two
	libName string
	libVer  string

	free     bool // nothing is forbidden to its user
	mute     bool // CLIENT REPLY OFF
	skipNext bool // CLIENT REPLY SKIP: the next reply
	skip     bool // this reply
	aloud    bool // this reply is a message: it is not muted although others are
	slow     int  // commands of this chunk, since the last flush, that are not cheap
	turn     turn
	quit     error

	track tracking
	subs  subscriptions

	tag   uint64   // RL.TRACE: of the next call
	last  *command // of the latest lookup
	memo  limitMemo
	stats tally
}

func (c *client) p() proto { return proto(c.proto.Load()) }

// start makes a new client what it is before it says anything: the default user if
// nobody needs a password, else nobody.
func (c *client) start() {
	if len(c.srv.users) == 0 {
		c.become(anyone)
		return
	}
	c.become(nil)
}

// reset returns the session to its beginning, as RESET does.
func (c *client) reset() {
	c.start()
	c.proto.Store(2)
	c.db.Store(0)
	c.mute, c.skipNext = false, false
	c.track.stop()
	c.tracks.Store(false)
	c.subs.clear()
	c.setName("")
}

// answer takes the whole commands from the front of b, at most one chunk of
// them, answers them in order and writes the replies. It returns the bytes
// taken, and whether b may hold further whole commands. The error ends the
// connection; everything before it was answered.
func (c *client) answer(b []byte) (n int, more bool, err error) {
	c.stats.began = time.Since(c.srv.started)
	c.slow = 0
	defer c.turn.end()
	for count := 0; c.quit == nil; count++ {
		if more = count == c.srv.cfg.MaxPipeline; more {
			break
		}
		args, taken, err := c.s.parser.next(b[n:], c.s.args[:0])
		c.s.args = args[:0]
		if err == errIncomplete {
			break
		}
		if err == errAlien {
			c.quit = err
			break
		}
		if err != nil {
			c.settle()
			c.stop(nil)
			c.reply(redcon.AppendError(c.s.out, "ERR "+err.Error()))
			c.quit = err
			break
		}
		n += taken
		if len(args) == 0 {
			continue
		}
		c.exec(args)
		if len(c.s.out)+len(c.s.literals) > min(flushSize, c.srv.cfg.OutputBuffer) || c.slow > slowMax {
			c.settle()
			c.turn.end()
			if c.flush() != nil {
				break
			}
			c.turn.begin(c.srv)
			c.slow = 0
		}
	}
	if c.quit == errAlien {
		c.s.drop()
		c.count()
		return n, false, c.quit
	}
	c.settle()
	c.turn.end()
	c.flush()
	return n, more, c.quit
}

// exec executes one command or gathers it.
func (c *client) exec(args [][]byte) {
	c.skip, c.skipNext = c.skipNext, false
	cmd := c.lookup(args)
	if cmd == nil {
		c.stats.commands++
		return
	}
	if cmd != c.stats.command {
		c.stop(cmd)
		c.command.Store(cmd)
	}
	c.stats.calls++
	switch {
	case cmd.arity > 0 && len(args) != cmd.arity, len(args) < -cmd.arity:
		c.reject(cmd, cmd.usageError())
	case !c.free && c.refused(cmd, args):
	case c.subs.only && !cmd.pubsub && c.p() == 2:
		c.reject(cmd, errSubscribed(cmd.name))
	case cmd.ask != nil:
		if err := cmd.ask(c, args); err != nil {
			c.fail("ERR " + err.Error())
		}
	default:
		if cmd.settles {
			c.slow++
			c.settle()
		}
		c.reply(cmd.run(c, c.begin(), args))
	}
	if c.track.on {
		c.invalidate(cmd, args)
	}
}

// stop ends the counting of calls of the command before; what comes is of cmd, nil: of none.
func (c *client) stop(cmd *command) {
	c.countCalls()
	c.stats.command = cmd
}

// lookup finds the command or subcommand, or replies that there is none.
func (c *client) lookup(args [][]byte) *command {
	cmd := c.last
	if name := args[0]; cmd == nil || string(name) != cmd.upper && !is(name, cmd.name) {
		if cmd = c.srv.table.find(name); cmd == nil {
			c.stop(nil)
			if is(name, "post") || is(name, "host:") {
				c.quit = errAlien
			} else if text := unsupported[lowered(name[:min(len(name), maxCommand)])]; text != "" {
				c.fail(text)
			} else {
				c.fail(errUnknown(args))
			}
			return nil
		}
		c.last = cmd
	}
	if cmd.subs == nil || len(args) == 1 {
		return cmd
	}
	if sub := cmd.find(args[1]); sub != nil {
		return sub
	}
	c.stop(nil)
	for _, l := range cmd.later {
		if is(args[1], l) {
			c.fail(fmt.Sprintf("ERR %s %s is not supported by this version of limitd", cmd.upper, quoted(args[1])))
			return nil
		}
	}
	c.fail(errSubcommand(cmd.name, args[1]))
	return nil
}

func (c *client) setName(name string) {
	c.mu.Lock()
	c.name = name
	c.mu.Unlock()
}
