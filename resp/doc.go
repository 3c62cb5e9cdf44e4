// Package resp is the wire: it speaks RESP2 and RESP3 with the clients.
//
// One goroutine serves one connection. What one read yields is a chunk: its
// commands are framed in place, the calls that need a decision are gathered in a
// [limiter.Chunk] and answered by one Do, and all replies leave in one write, in
// the order of the commands. A pipeline of any depth is thus a few chunks, and a
// chunk costs one read, one agreement and one write, whatever its length.
//
//	read ─▶ parser ─▶ client.exec ─▶ gathered calls ─▶ Limiter.Do ─▶ replies ─▶ write
//	          │            └────────▶ in place (PING, HELLO, COMMAND, …) ──┘
//	          └ arguments alias the read buffer; a command that is not whole yet
//	            is continued at the next read, never parsed again from its start
//
// Three kinds of commands stand in the table (table.go). Those that ask the
// limiter are gathered. Those that concern the connection alone are rendered in
// place and do not split the chunk. Those that read state or the cluster (INFO,
// DBSIZE, SCAN, RL.CLUSTER, …) first let the gathered calls be answered, so that
// a client sees its own writes.
//
// The port is open to whoever can reach it, so everything is bounded ([Config]):
// arguments, bytes of an argument and of a request, commands of a chunk, output
// that waits to be read, connections, time to write. The parser reads lengths
// itself, refuses what is out of bounds before it allocates for it, does not
// recurse, and its work is linear in the input however the input is cut. A panic
// in a handler closes its connection and nothing else. A connection that waits
// for its client holds no buffers but what was half sent (half.go); that, and the
// replies that are not read, is bounded for all connections together (budget.go), and
// who asks for very much works on it in turns (turn.go).
//
// Where users are configured, a connection is nobody until it has said who it is
// (auth.go): less is read of it, and only AUTH, HELLO, RESET and QUIT are executed. Who
// may run what follows from a command's flags (user.go), and is listed in
// testdata/permissions.golden.
//
// Texts and shapes of replies are those of Redis 7 where the command is one of
// its own, because clients compare them; differences_test.go lists where they are
// not, and why. What clients insist on though it means nothing here is answered
// too: CLIENT TRACKING (tracking.go) and SUBSCRIBE (pubsub.go). Errors of CL.THROTTLE keep the phrases
// of redis-cell behind "ERR ". A reply is an error exactly if its first byte is
// '-'.
//
// resp imports limiter and algo; what it needs of the node it asks of [Admin].
package resp
