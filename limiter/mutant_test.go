//go:build mutant

package limiter

import (
	"strings"
	"testing"

	"limitd/fsm"
	"limitd/mutant"
)

func TestDefectsOfOutcomesShow(t *testing.T) {
	t.Cleanup(func() { mutant.Choose("") })
	for name, shows := range map[string]func(Call) bool{
		"ack-before-commit":  func(c Call) bool { return c.Status == OK && c.Verdict.Allowed },
		"indoubt-as-refused": func(c Call) bool { return strings.HasPrefix(c.Status.Error(), "TRYAGAIN") },
	} {
		mutant.Choose(name)
		f := newFake()
		f.commit = func(func() uint64) (uint64, fsm.Outcome) { return 0, fsm.Unknown }
		l := f.limiter(t, nil)
		for range 3 { // a task is used again after it was answered too early
			if c := ask(l, Call{Op: Take, Key: []byte("k"), Limit: throttle(t, 9, 1, 60), Cost: 1}); !shows(c) {
				t.Errorf("%s: %v, %+v", name, c.Status, c.Verdict)
			}
		}
	}
}

// Each defect of several limits and IDs charges, or gives back, what it must not.
func TestDefectsOfSeveralLimitsAndIDsShow(t *testing.T) {
	t.Cleanup(func() { mutant.Choose("") })
	for name, show := range map[string]func(*Limiter) (before, after int64){
		"takeall-partial": func(l *Limiter) (before, after int64) {
			ask(l, one(t, "b", "log:2/1h", 2))
			ask(l, withID(all("a", t, "a", "fixed:9/1h", "b", "log:2/1h"), "id")) // else it is denied from the applied state
			return 0, used(l, "a", expr(t, "fixed:9/1h"))
		},
		"id-not-kept": func(l *Limiter) (before, after int64) {
			for range 2 {
				ask(l, withID(one(t, "k", "log:9/1h", 2), "id"))
			}
			return 2, used(l, "k", expr(t, "log:9/1h"))
		},
		"refund-id-twice": func(l *Limiter) (before, after int64) {
			ask(l, one(t, "k", "fixed:9/1h", 3))
			ask(l, withID(one(t, "k", "fixed:9/1h", 2), "id"))
			for range 2 {
				ask(l, withID(one(t, "k", "fixed:9/1h", -2), "id"))
			}
			return 3, used(l, "k", expr(t, "fixed:9/1h"))
		},
	} {
		for _, on := range []bool{false, true} {
			mutant.Choose("")
			if on {
				mutant.Choose(name)
			}
			if want, got := show(newFake().limiter(t, nil)); (got == want) == on {
				t.Errorf("%s, on %v: %d units are used, %d are right", name, on, got, want)
			}
		}
	}
}
