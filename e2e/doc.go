// Package e2e tests the built binary from outside: real processes on loopback,
// real clients (redis-cli, go-redis, python3-redis), kill -9 and damaged files.
//
// TestMain builds limitd once and fails if a client that the tests need is not
// installed. Ports are reserved before a node starts ([reservePorts] says how),
// nothing waits by sleeping, and every process is ended by its pid.
//
// TestChurn does everything at once, in random order; `make churn` runs it for
// longer, and its flag -seed repeats what it did.
//
// With -short each test does the same with fewer calls and fewer rounds; no test
// is left out.
package e2e
