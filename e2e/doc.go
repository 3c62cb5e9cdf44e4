// Package e2e tests the built binary from outside: real processes on loopback,
// real clients (redis-cli, go-redis, python3-redis), kill -9 and damaged files, and
// disks that lose their power, hang, fill up and fail (disk_image_test.go,
// disk_inject_test.go).
//
// TestMain builds limitd once and fails if a client that the tests need is not
// installed. Ports are reserved before a node starts ([reservePorts] says how),
// nothing waits by sleeping, and every process is ended by its pid.
//
// TestChurn does everything at once, in random order; `make churn` runs it for
// longer, and its flag -seed repeats what it did.
//
// Most tests wait rather than work, so they run side by side: give -parallel twice as
// many as there are cores. What bounds a time allows for what the machine was late by
// meanwhile (machine_test.go), so that a bound in seconds can be a close one.
//
// With -short each test does the same with fewer calls and fewer rounds. The few
// that take minutes are left out, and say NOT TESTED.
package e2e
