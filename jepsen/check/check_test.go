package check

import (
	"encoding/json"
	"testing"
)

func judge(t testing.TB, w *world) Verdict {
	t.Helper()
	v, err := Run(w.save(t))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func show(v Verdict) string {
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
	if testing.Short() {
		seeds = 5
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		if v := judge(t, simulate(seed, "", 12, 150)); v.Status != Valid {
			t.Fatalf("seed %d: %s", seed, show(v))
		}
	}
}
