package algo_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"limitd/algo"
)

// record is a store of one key: it applies effects as the contract says.
type record struct {
	state  []byte
	expiry int64
}

// at is what Decide gets to see: an expired record is no record.
func (r *record) at(now int64) []byte {
	if r.expiry <= now {
		return nil
	}
	return r.state
}

func (r *record) apply(e algo.Effect) {
	switch e.Op {
	case algo.Replace:
		r.state, r.expiry = append([]byte(nil), e.State...), e.Expiry
	case algo.Splice:
		kept := r.state[e.Drop : len(r.state)-e.Cut]
		r.state, r.expiry = append(append([]byte(nil), kept...), e.State...), e.Expiry
	}
}

type vectors struct {
	Sequences []struct {
		Name      string `json:"name"`
		FreshKeys bool   `json:"fresh_key_each_step"`
		Steps     []step `json:"steps"`
	} `json:"sequences"`
}

type step struct {
	TNS      int64     `json:"t_ns"`
	MaxBurst int64     `json:"max_burst"`
	Count    int64     `json:"count"`
	Period   int64     `json:"period"`
	Quantity int64     `json:"quantity"`
	Reply    *[5]int64 `json:"reply"`
	Error    string    `json:"error"`
}

// throttle is CL.THROTTLE on one key: the five integers, or an error.
func (r *record) throttle(now int64, s step) ([5]int64, error) {
	l, err := algo.NewThrottle(s.MaxBurst, s.Count, s.Period)
	if err == nil {
		err = l.CheckCost(s.Quantity)
	}
	if err != nil {
		return [5]int64{}, err
	}
	v, e := l.Decide(r.at(now), now, 0, s.Quantity, nil)
	r.apply(e)
	reply := [5]int64{0, v.Limit, v.Remaining, -1, algo.CeilSeconds(v.ResetAfter)}
	if !v.Allowed {
		reply[0] = 1
		if v.RetryAfter != algo.Never {
			reply[3] = algo.CeilSeconds(v.RetryAfter)
		}
	}
	return reply, nil
}

// The replies of redis-cell's own tests, and ours where it is wrong.
func TestThrottleVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/cl-throttle.json")
	if err != nil {
		t.Fatal(err)
	}
	var vs vectors
	if err := json.Unmarshal(data, &vs); err != nil {
		t.Fatal(err)
	}
	if len(vs.Sequences) < 20 {
		t.Fatalf("only %d sequences in testdata", len(vs.Sequences))
	}
	for _, seq := range vs.Sequences {
		t.Run(seq.Name, func(t *testing.T) {
			const base = 1_790_000_000e9 // a whole second
			var r record
			for i, s := range seq.Steps {
				if seq.FreshKeys {
					r = record{}
				}
				got, err := r.throttle(base+s.TNS, s)
				switch {
				case s.Reply != nil && (err != nil || got != *s.Reply):
					t.Errorf("step %d: %+v: got %v, %v, want %v", i, s, got, err, *s.Reply)
				case s.Reply == nil && s.Error == "":
					t.Errorf("step %d has neither a reply nor an error", i)
				case s.Reply == nil:
					checkArgError(t, err, s.Error)
				}
			}
		})
	}
}

func checkArgError(t *testing.T, err error, want string) {
	t.Helper()
	var arg *algo.ArgError
	if !errors.As(err, &arg) {
		t.Errorf("got %v, want an ArgError with %q", err, want)
		return
	}
	if !strings.Contains("ERR "+arg.Msg, want) || !strings.Contains(arg.Msg, arg.Arg) {
		t.Errorf("%q does not contain %q and the argument's name %q", arg.Msg, want, arg.Arg)
	}
}
