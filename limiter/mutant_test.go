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
