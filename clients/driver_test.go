package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"limitd/proc/nodes"
)

// shell starts a driver that is a line of shell.
func shell(t *testing.T, script string) *driver {
	t.Helper()
	d, err := startDriver(shellClient(script), t.TempDir(), "127.0.0.1:1", login{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	return d
}

func shellClient(script string) *client {
	return &client{name: "a shell", driver: []string{"/bin/sh", "-c", script}}
}

func TestAnswersOfADriver(t *testing.T) {
	d := shell(t, `while read -r verb rest; do echo "$verb $rest"; done`)
	a, err := d.ask("ok", 0, 100, 99, -1, 864)
	if err != nil || !a.ok || a.number(1) != 100 || a.number(3) != -1 || a.number(5) != -1 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err = d.ask("err", "INDOUBT perhaps"); err != nil || a.ok || a.text != "INDOUBT perhaps" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err = d.ask("hm"); err == nil {
		t.Error("an answer that is neither ok nor err is taken")
	}
}

func TestADriverThatEndsOrHangsIsReportedWithItsStderr(t *testing.T) {
	d := shell(t, `read -r line; echo "no such module" >&2; exit 1`)
	_, err := d.ask("version")
	if err == nil || !strings.Contains(err.Error(), "ended") || !strings.Contains(err.Error(), "no such module") {
		t.Errorf("its end is reported as %v", err)
	}
	d = shell(t, `echo "still connecting" >&2; while read -r line; do :; done`)
	d.patience = 300 * time.Millisecond
	if _, err = d.ask("version"); !errors.Is(err, errNoAnswer) || !strings.Contains(err.Error(), "still connecting") {
		t.Errorf("its silence is reported as %v", err)
	}
}

// A client that is told too much, or loses what it is told, must make its cell red.
func TestACellIsRedIfTheClientCountsSomethingElse(t *testing.T) {
	for script, want := range map[string]string{
		`while read -r line; do case $line in *THROTTLE*) echo "ok 0 30 29 -1 1";; *) echo "ok 1 30 29 0 1 0 1";; esac; done`: "must allow exactly 30: allowed 90",
		`while read -r line; do echo "err EOF"; done`:               "must allow exactly 30: allowed 0",
		`while read -r line; do echo "ok 1 30"; done`:               "not with five integers",
		`read -r line; echo "ok 0 30 29 -1 1"; echo oops >&2`:       "ended",
		`while read -r line; do echo "ok 999 1 0"; done # pipeline`: `answered "999 1 0", not "333 667 0"`,
	} {
		m := &matrix{options: options{limit: 30, pipelined: 1000}, dir: t.TempDir()}
		r := &row{client: shellClient(script), failed: map[cell]error{}}
		at := &nodes.Node{Addr: "127.0.0.1:1"}
		check := m.call
		if strings.Contains(script, "pipeline") {
			check = m.pipe
		}
		if err := check(context.Background(), r, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", script, err, want)
		}
	}
}
