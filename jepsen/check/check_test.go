package check

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func judge(t testing.TB, w *world) Verdict {
	t.Helper()
	v, err := Run(w.save(t))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// show is what is not valid.
func show(v Verdict) string {
	v.Checks = slices.DeleteFunc(v.Checks, func(r Result) bool { return r.Status == Valid })
	for i := range v.Checks {
		if len(v.Checks[i].Examples) > 3 {
			v.Checks[i].Examples = v.Checks[i].Examples[:3]
		}
	}
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

func TestGoodRunsAreValid(t *testing.T) {
	seeds := uint64(50)
	if testing.Short() || race {
		seeds = 4
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			if v := judge(t, simulate(seed, "", 12, 150)); v.Status != Valid {
				t.Error(show(v))
			}
		})
	}
}

// TestALargeRunIsJudgedSoon: 20,000 operations in less than 10 s of one processor.
func TestALargeRunIsJudgedSoon(t *testing.T) {
	seconds, least := int64(55), int64(20000)
	if race {
		seconds, least = 8, 2000
	}
	dir := simulate(1, "", seconds, 450).save(t)
	begun := processorTime(t)
	v, err := Run(dir)
	if err != nil {
		t.Fatal(err)
	}
	took := processorTime(t) - begun
	t.Logf("%d operations, %v", v.Figures["operations"], took)
	if v.Figures["operations"] < least || v.Status != Valid || took > 10*time.Second {
		t.Errorf("%d operations in %v: %s", v.Figures["operations"], took, show(v))
	}
}

// processorTime that this process has used.
func processorTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
