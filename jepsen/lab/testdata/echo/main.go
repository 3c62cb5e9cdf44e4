// Command echo is a node for the lab's own tests. On both ports it takes lines:
//
//	dial ADDR    true or false: a connection was made, and was answered
//	now          wall clock, ns; and how many ms of 50 went by
//	write FILE   a byte into a file of the data directory
//	sync FILE    the same, and synced
//	busy MS      how many ms of processor time it got in MS
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// echo serve --config FILE --node ID --trace FILE [--fail]
func main() {
	if len(os.Args) > 8 {
		os.Exit(3)
	}
	config, err := os.ReadFile(os.Args[3])
	check(err)
	for _, part := range strings.Split(string(config), "[[node]]")[1:] {
		value := func(key string) string {
			_, rest, _ := strings.Cut(part, key+" = \"")
			v, _, _ := strings.Cut(rest, "\"")
			return v
		}
		if value("id") != os.Args[5] {
			continue
		}
		check(os.MkdirAll(value("data"), 0o700))
		check(os.Chdir(value("data")))
		for _, addr := range []string{value("resp"), value("peer")} {
			ln, err := net.Listen("tcp", addr)
			check(err)
			go serve(ln)
		}
	}
	fmt.Println("ready")
	select {}
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func serve(ln net.Listener) {
	for {
		c, err := ln.Accept()
		check(err)
		go func() {
			defer c.Close()
			for in := bufio.NewScanner(c); in.Scan(); {
				verb, what, _ := strings.Cut(in.Text(), " ")
				fmt.Fprintln(c, answer(verb, what))
			}
		}()
	}
}

func answer(verb, what string) string {
	switch verb {
	case "dial":
		c, err := net.DialTimeout("tcp", what, 700*time.Millisecond)
		if err != nil {
			return "false"
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(700 * time.Millisecond))
		fmt.Fprintln(c, "now")
		_, err = c.Read(make([]byte, 1))
		return fmt.Sprint(err == nil)
	case "now":
		begun := time.Now()
		time.Sleep(50 * time.Millisecond)
		return fmt.Sprint(time.Now().UnixNano(), time.Since(begun).Milliseconds())
	case "write", "sync":
		return fmt.Sprint(write(what, verb == "sync") == nil)
	case "busy":
		d, err := time.ParseDuration(what + "ms")
		check(err)
		begun := used()
		for end := time.Now().Add(d); time.Now().Before(end); {
		}
		return fmt.Sprint((used() - begun).Milliseconds())
	}
	return "?"
}

func write(file string, sync bool) error {
	w, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = w.WriteString("x")
	}
	if err != nil || !sync {
		return err
	}
	if err := w.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err == nil {
		err = dir.Sync()
	}
	return err
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
