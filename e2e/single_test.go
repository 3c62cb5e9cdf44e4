package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// startSingle runs `limitd serve` without a configuration file in dir.
func startSingle(t testing.TB, dir string, ports []int) *process {
	return launch(t, dir, "single", "serve", "--listen", addr(ports[0]), "--peer-listen", addr(ports[1]))
}

func TestServeWithoutConfigIsReadyAtOnceAndDurable(t *testing.T) {
	t.Parallel()
	dir, ports := t.TempDir(), reservePorts(t, 2)
	r := dial(t, addr(ports[0]))
	for round := range int64(3) {
		began := time.Now()
		p := startSingle(t, dir, ports)
		var got reply
		eventually(t, 10*time.Second, "the first connection", func() bool {
			if !p.running() {
				t.Fatalf("it has ended:\n%s", p.out)
			}
			var err error
			got, err = r.throttle("user:42", 15, 16, 86400, 1)
			if code(err) != "" && machine.calm(began) { // it waits for itself for some seconds
				t.Fatalf("it accepted a connection before it could decide: %v", err)
			}
			return err == nil
		})
		t.Logf("first answer after %v", time.Since(began))
		within(t, "the first answer", 3*time.Second, time.Since(began), began)
		if got[0] != 0 || got[2] != 15-round {
			t.Fatalf("round %d: %v, want remaining %d", round, got, 15-round)
		}
		p.kill()
	}
	id, err := os.ReadFile(filepath.Join(dir, "limitd-data", "node-id"))
	if err != nil || !regexp.MustCompile(`^n-[0-9a-f]{6}\n$`).Match(id) {
		t.Errorf("the node's id is kept as %q, %v", id, err)
	}
}

func TestTwoProcessesOnOneDataDirectory(t *testing.T) {
	t.Parallel()
	dir, ports := t.TempDir(), reservePorts(t, 4)
	first := startSingle(t, dir, ports)
	r := dial(t, addr(ports[0]))
	eventually(t, 10*time.Second, "the first process answers", func() bool {
		_, err := r.throttle("k", 15, 16, 86400, 1)
		return err == nil
	})
	second := startSingle(t, dir, ports[2:])
	if code := second.wait(10 * time.Second); code != 2 {
		t.Errorf("the second process ended with code %d, want 2", code)
	}
	if !strings.Contains(second.out.String(), "limitd-data") {
		t.Errorf("the second process does not name the directory:\n%s", second.out)
	}
	if got, err := r.throttle("k", 15, 16, 86400, 1); err != nil || got[2] != 14 || !first.running() {
		t.Errorf("the first process: %v, %v", got, err)
	}
}

func TestAddressBeyondLoopbackIsRefused(t *testing.T) {
	t.Parallel()
	port := portOf(addr(reservePorts(t, 1)[0]))
	for _, tc := range []struct{ flag, address, want string }{
		{"--listen", "0.0.0.0:" + port, "clients need no password: say --requirepass-file"},
		{"--listen", ":" + port, "clients need no password: say --requirepass-file"},
		{"--peer-listen", "0.0.0.0:" + port, "peers are not authenticated"},
		{"--listen", "nonsense", "\"nonsense\" is no host:port\n"},
	} {
		p := launch(t, t.TempDir(), "refused", "serve", tc.flag, tc.address)
		if code := p.wait(10 * time.Second); code != 2 || !strings.Contains(p.out.String(), tc.flag+": ") || !strings.Contains(p.out.String(), tc.want) {
			t.Errorf("%s %s: code %d\n%s", tc.flag, tc.address, code, p.out)
		}
	}
}

func TestOccupiedPortIsNamed(t *testing.T) {
	t.Parallel()
	dir, ports := t.TempDir(), reservePorts(t, 4)
	startSingle(t, dir, ports)
	r := dial(t, addr(ports[0]))
	eventually(t, 10*time.Second, "the first process answers", func() bool { return r.Ping(t.Context()).Err() == nil })
	for _, tc := range [][]string{
		{"serve", "--listen", addr(ports[0]), "--peer-listen", addr(ports[2]), "--data-dir", "a"},
		{"serve", "--listen", addr(ports[2]), "--peer-listen", addr(ports[1]), "--data-dir", "b"},
	} {
		p := launch(t, dir, "second", tc...)
		if code := p.wait(10 * time.Second); code != 2 || !strings.Contains(p.out.String(), "address already in use") {
			t.Errorf("%v: code %d\n%s", tc, code, p.out)
		}
	}
}

// TestSingleNodeMovesToOtherPorts: nobody but the node itself knows its
// addresses, so other flags next time must do.
func TestSingleNodeMovesToOtherPorts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range int64(2) {
		ports := reservePorts(t, 2)
		p := startSingle(t, dir, ports)
		r := dial(t, addr(ports[0]))
		eventually(t, 10*time.Second, "it answers", func() bool {
			if !p.running() {
				t.Fatalf("round %d: it has ended:\n%s", round, p.out)
			}
			got, err := r.throttle("k", 15, 16, 86400, 1)
			if err == nil && got[2] != 15-round {
				t.Fatalf("round %d: %v", round, got)
			}
			return err == nil
		})
		p.terminate()
	}
}
