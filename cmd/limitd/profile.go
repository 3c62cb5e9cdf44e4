package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"time"
)

// serveProfiles answers net/http/pprof's requests on a Unix socket, so that a benchmark
// can look at a node under load. The socket is the owner's alone.
func serveProfiles(socket string) (stop func(), err error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	runtime.SetMutexProfileFraction(100)
	runtime.SetBlockProfileRate(int(100 * time.Microsecond))
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	s := &http.Server{Handler: mux}
	go s.Serve(ln) // ends with Close
	return func() { s.Close() }, nil
}
