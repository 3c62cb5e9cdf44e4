package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestFlatRepliesBecomeObjects(t *testing.T) {
	ps, err := pairs([]any{"id", "n1", "applied", int64(7), "contact_ms", int64(-1)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]object{ps})
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"id":"n1","applied":7,"contact_ms":-1}]`; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	for _, bad := range []any{nil, "OK", []any{"odd"}} {
		if ps, err := pairs(bad); err == nil {
			t.Errorf("%v was read as %v", bad, ps)
		}
	}
}

func TestTableHasOneHeader(t *testing.T) {
	var b bytes.Buffer
	row := object{{"id", "n1"}, {"role", "leader"}}
	if err := printTable(&b, []object{row, row}); err != nil {
		t.Fatal(err)
	}
	if want := "id  role\nn1  leader\nn1  leader\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestThrottleReplyIsCheckedBeforeItIsBelieved(t *testing.T) {
	r, err := parseThrottle([]any{int64(1), int64(16), int64(0), int64(5400), int64(86400)})
	if err != nil || !r.Limited || r.RetryAfter != 5400 {
		t.Errorf("got %+v, %v", r, err)
	}
	if !strings.Contains(r.String(), "denied") || !strings.Contains(r.String(), "5400 s") {
		t.Errorf("prints as %q", r)
	}
	for _, bad := range []any{nil, "OK", []any{int64(0)}, []any{int64(0), int64(1), "x", int64(1), int64(1)}} {
		if r, err := parseThrottle(bad); err == nil {
			t.Errorf("%v was read as %+v", bad, r)
		}
	}
}
