package main

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A row that lacks its program is neither passed nor missed, and each place says so.
func TestARowThatIsNotMeasuredHasNotPassed(t *testing.T) {
	absent := func(context.Context, *env) (*peer, error) {
		return nil, installed("no-such-program-of-limitd", "apt-get install it")
	}
	e := &env{}
	for _, r := range []row{
		{"bound", false, comparison{name: "a ratio", bound: 4, stretch: 8, start: absent}.measure},
		{"free", false, comparison{name: "a ratio without bound", start: absent}.measure},
		{"accuracy", false, accuracyOfPeer("it", absent)},
	} {
		res, err := r.measure(t.Context(), e)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if res.ok() {
			t.Errorf("%s: ok", r.name)
		}
		var out strings.Builder
		res.print(&out)
		for what, text := range map[string]string{"report": out.String(), "results": res.markdown()} {
			if !strings.Contains(text, "NOT MEASURED: no-such-program-of-limitd is not there: apt-get install it") || strings.Contains(text, "pass") {
				t.Errorf("%s: %s say %q", r.name, what, text)
			}
		}
		if want := "at least 4 (stretch 8) | **not measured** |"; r.name == "bound" && !strings.HasSuffix(res.markdown(), want) {
			t.Errorf("results say %q, not %q", res.markdown(), want)
		}
		if err := e.measure(t.Context(), []row{r}, ""); !errors.Is(err, errUnmeasured) || errors.Is(err, errMissed) {
			t.Errorf("%s: the run ends with %v", r.name, err)
		}
	}
}

// What fails for another reason than an absent program is an error, not a row that is skipped.
func TestAPeerThatFailsIsNoRowThatIsSkipped(t *testing.T) {
	broken := errors.New("it has died")
	e := &env{}
	c := comparison{name: "a ratio", bound: 4, start: func(context.Context, *env) (*peer, error) { return nil, broken }}
	if res, err := c.measure(t.Context(), e); !errors.Is(err, broken) || res != nil {
		t.Errorf("measure = %v, %v", res, err)
	}
}

func TestVerdictNamesWhatWasMissedAndWhatWasNotMeasured(t *testing.T) {
	if err := verdict(nil, nil); err != nil {
		t.Error(err)
	}
	err := verdict([]string{"denied"}, []string{"etcd"})
	if !errors.Is(err, errMissed) || !errors.Is(err, errUnmeasured) || !strings.Contains(err.Error(), "denied") || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("verdict = %v", err)
	}
}

// A peer that decides otherwise than the row says must not become a figure.
func TestComparisonsCheckWhatThePeerDid(t *testing.T) {
	admitted, denied := comparison{name: "admitted"}, comparison{name: "denied", denied: true}
	for _, c := range []struct {
		row  comparison
		n    counted
		good bool
	}{
		{admitted, counted{Allowed: 9}, true}, {admitted, counted{Allowed: 9, Denied: 1}, false}, {admitted, counted{}, false},
		{denied, counted{Denied: 9}, true}, {denied, counted{Allowed: 1, Denied: 9}, false}, {denied, counted{}, false},
	} {
		if err := c.row.check(&c.n); (err == nil) != c.good {
			t.Errorf("%s, %+v: %v", c.row.name, c.n, err)
		}
	}
}
