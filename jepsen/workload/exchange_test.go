package workload

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"limitd/jepsen/history"
)

// types of outcomes, a letter each: o, f, i.
func types(all []outcome) string {
	var b strings.Builder
	for _, o := range all {
		b.WriteByte((o.Type + " ")[0])
	}
	return b.String()
}

func TestWhatEachErrorSaysOfTheCharge(t *testing.T) {
	for reply, want := range map[string]string{
		"-ERR max_burst: want a number": "f", "-BUSY the queue is full": "f", "-OOM too many keys": "f", "-CLUSTERDOWN no leader": "f",
		"-TRYAGAIN not decided": "f", "-LOADING the state": "f", "-WRONGTYPE a string": "f",
		"-INDOUBT perhaps": "i", "-MOVED 1 127.0.0.1:1": "i", "-": "i", "-INDOUBT": "i", "-ERRATIC": "i", "-indoubt": "i", "+OK": "o", "*1\r\n:0": "o", "$-1": "o",
	} {
		f := &fake{answer: func(string, []string) string { return reply + "\r\n" }}
		w, end := f.start(t, Config{})
		c := w.client(0, 1)
		if got := types(c.ask("n1", w.calls(1))); got != want {
			t.Errorf("%s: %s, want %s", reply, got, want)
		}
		if kept := c.conn != nil; kept != (want != "i") {
			t.Errorf("%s: the connection is kept: %v", reply, kept)
		}
		c.drop()
		end()
	}
}

// An operation may have rules of its own for what an error means.
func TestAnOperationKnowsItsOwnErrors(t *testing.T) {
	op := Operation{Error: func(code string) (history.Type, bool) { return history.Fail, code == "IDMISMATCH" }}
	for e, want := range map[replyError]history.Type{"IDMISMATCH other": history.Fail, "INDOUBT": history.Info, "BUSY": history.Fail, "X": history.Info} {
		if got := op.classify(e); got != want {
			t.Errorf("%s: %s, want %s", e, got, want)
		}
	}
}

// What comes before the doubt is known, and what comes behind it too, if it is answered.
func TestADoubtInAPipelineIsOfItsCallAlone(t *testing.T) {
	f := &fake{answer: func(_ string, cmd []string) string {
		if cmd[1] == "k2" {
			return "-INDOUBT perhaps\r\n"
		}
		return ":1\r\n"
	}}
	w, end := f.start(t, Config{})
	c := w.client(0, 3)
	if got := types(c.ask("n1", w.calls(3))); got != "oio" || c.conn != nil {
		t.Errorf("%s, and the connection is %v", got, c.conn)
	}
	if n := w.processes; c.process[0] != 0 || c.process[1] != 1+n || c.process[2] != 2 {
		t.Errorf("processes %v, want 0, 1 and %d, and 2", c.process, n)
	}
	c.ask("n1", w.calls(3))
	c.drop()
	end()
	if len(f.dials) != 2 {
		t.Errorf("%d connections, want 2", len(f.dials))
	}
}

// pipe is a dialer to a node that does as it is told with one connection.
func pipe(node func(net.Conn)) Dialer {
	return func(string, time.Duration) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			node(there)
		}()
		return here, nil
	}
}

// However many bytes of the replies come, what was answered is known and the rest is
// in doubt.
func TestAReplyThatIsCutOff(t *testing.T) {
	const replies = "+OK\r\n:11\r\n+OK\r\n-BUSY x\r\n+OK\r\n*2\r\n:1\r\n$2\r\nab\r\n"
	whole := map[int]string{}
	for n := range len(replies) + 1 {
		switch {
		case n < strings.Index(replies, "+OK\r\n-"):
			whole[n] = "iii"
		case n < strings.Index(replies, "+OK\r\n*"):
			whole[n] = "oii"
		case n < len(replies):
			whole[n] = "ofi"
		default:
			whole[n] = "ofo"
		}
	}
	for n, want := range whole {
		w, end := (&fake{}).start(t, Config{})
		w.c.Dial = pipe(func(c net.Conn) {
			c.Read(make([]byte, 4<<10))
			io.WriteString(c, replies[:n])
		})
		c := w.client(0, 3)
		if got := types(c.ask("n1", w.calls(3))); got != want || (c.conn != nil) != (want == "ofo") {
			t.Errorf("%d bytes of replies: %s, want %s; the connection is %v", n, got, want, c.conn)
		}
		c.drop()
		end()
	}
}

// However many bytes of the commands are taken, one that was not taken to its end was
// not charged.
func TestACommandThatIsCutOff(t *testing.T) {
	length := make(chan int, 1)
	w, end := (&fake{}).start(t, Config{})
	w.c.Dial = pipe(func(c net.Conn) {
		n, _ := c.Read(make([]byte, 4<<10))
		length <- n
	})
	w.client(0, 2).ask("n1", w.calls(2))
	end()
	all := <-length
	first := all / 2 // the calls are equally long
	for n := range all + 1 {
		w, end := (&fake{}).start(t, Config{})
		w.c.Dial = pipe(func(c net.Conn) { io.ReadFull(c, make([]byte, n)) })
		c := w.client(0, 2)
		want := "ff"
		if n >= first {
			want = "if"
		}
		if n == all {
			want = "ii"
		}
		if got := types(c.ask("n1", w.calls(2))); got != want || c.conn != nil {
			t.Errorf("%d of %d bytes: %s, want %s", n, all, got, want)
		}
		end()
	}
}

// A node that stalls costs a client its patience and no more, wherever it stalls.
func TestAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ replies, want string }{{"", "ii"}, {"+OK\r\n", "ii"}, {"+OK\r\n:1\r\n+", "oi"}} {
			w, end := (&fake{}).start(t, Config{Patience: 2 * time.Second})
			w.c.Dial = pipe(func(c net.Conn) {
				c.Read(make([]byte, 4<<10))
				io.WriteString(c, tt.replies)
				c.Read(make([]byte, 1)) // until the client goes
			})
			began := time.Now()
			c := w.client(0, 2)
			got := types(c.ask("n1", w.calls(2)))
			if took := time.Since(began); got != tt.want || took != 2*time.Second || c.conn != nil {
				t.Errorf("%q: %s after %v, want %s after 2s", tt.replies, got, took, tt.want)
			}
			end()
		}
	})
}

// A call whose tag was not taken cannot be found again, so that nothing is claimed
// about it, unless it was refused.
func TestATagThatIsRefused(t *testing.T) {
	for reply, want := range map[string]string{":1\r\n": "i", "-BUSY x\r\n": "f", "-INDOUBT x\r\n": "i"} {
		w, end := (&fake{}).start(t, Config{})
		w.c.Dial = pipe(func(c net.Conn) {
			c.Read(make([]byte, 4<<10))
			fmt.Fprintf(c, "-ERR unknown command\r\n%s", reply)
		})
		c := w.client(0, 1)
		if got := types(c.ask("n1", w.calls(1))); got != want {
			t.Errorf("%q: %s, want %s", reply, got, want)
		}
		c.drop()
		end()
	}
}

func TestANodeThatIsAway(t *testing.T) {
	f := &fake{down: map[string]bool{"n2": true}}
	w, end := f.start(t, Config{})
	c := w.client(0, 2)
	if got := types(c.ask("n2", w.calls(2))); got != "ff" {
		t.Errorf("%s, want ff", got)
	}
	c.ns = 3
	w.c.Dial = pipe(func(c net.Conn) {
		c.Read(make([]byte, 4<<10))
		io.WriteString(c, "-ERR no such namespace\r\n")
	})
	if got := types(c.ask("n1", w.calls(1))); got != "f" || c.conn != nil {
		t.Errorf("no namespace: %s, want f: nothing was sent", got)
	}
	end()
}
