package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"limitd/jepsen/lab"
	"limitd/jepsen/nemesis"
)

// OptionsFile is what a run directory keeps of its options: `jepsen replay` reads them.
const OptionsFile = "options.json"

// Options of a run.
type Options struct {
	Seed    uint64            `json:"seed"`
	Profile string            `json:"profile"`
	Nemeses string            `json:"nemeses"` // names, separated by commas; all; none
	Time    time.Duration     `json:"time"`    // for how long faults begin, ns
	Nodes   int               `json:"nodes"`   // voters at the start
	Workers int               `json:"workers"`
	Rate    float64           `json:"rate"` // operations per second
	Slow    bool              `json:"slow,omitempty"`
	Proxy   bool              `json:"proxy,omitempty"`
	Store   string            `json:"log_store,omitempty"` // raft.log_store of the nodes; empty: the default
	Tags    string            `json:"tags,omitempty"`      // of the binary that is built
	Binary  string            `json:"binary,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // of the nodes

	From       string `json:"from,omitempty"`     // commit of the older binary; empty: the newest with another one
	Previous   string `json:"previous,omitempty"` // the older binary
	NoPrevious string `json:"-"`                  // why there is none

	Dir string `json:"-"`
}

// Validate says what is wrong with the options, all at once.
func (o Options) Validate() error {
	var all []error
	need := func(ok bool, says string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf(says, args...))
		}
	}
	if _, err := nemesis.Find(o.Nemeses); err != nil {
		all = append(all, fmt.Errorf("-nemesis: %w", err))
	}
	need(o.Time > 0, "-time must be above 0, not %v", o.Time)
	need(o.Nodes == 1 || o.Nodes == 3 || o.Nodes == 5, "-nodes must be 1, 3 or 5, not %d", o.Nodes)
	need(o.Nodes > 1 || o.Nemeses == "none", "-nodes 1 goes with -nemesis none only")
	need(slices.Contains([]string{"", "bolt", "wal"}, o.Store), "-log-store must be bolt or wal, not %q", o.Store)
	need(o.Workers > 0, "-workers must be above 0, not %d", o.Workers)
	need(o.Rate > 0, "-rate must be above 0, in operations per second, not %v", o.Rate)
	return errors.Join(all...)
}

// replay is the line that makes the run again.
func (o Options) replay() string {
	line := fmt.Sprintf("go run ./jepsen/cmd/jepsen run -seed %d -profile %s -nemesis %s -time %v -nodes %d -workers %d -rate %v",
		o.Seed, o.Profile, o.Nemeses, o.Time, o.Nodes, o.Workers, o.Rate)
	if o.Slow {
		line += " -slow"
	}
	if o.Proxy {
		line += " -proxy"
	}
	if o.Store != "" {
		line += " -log-store " + o.Store
	}
	if o.Tags != "" {
		line += " -tags " + o.Tags
	}
	if o.From != "" {
		line += " -from " + o.From
	}
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		line += fmt.Sprintf(" -env %s=%s", name, o.Env[name])
	}
	return line
}

// settings are the nodes' configuration.
func (o Options) settings() string {
	if o.Store == "" {
		return settings
	}
	return fmt.Sprintf("[raft]\nlog_store = %q\n%s", o.Store, strings.TrimPrefix(settings, "[raft]\n"))
}

// previous says of which commit the older binary is, if the run has one.
func (o Options) previous() string {
	if o.Previous != "" && o.From == "" {
		return "unknown"
	}
	return o.From
}

// gates are the least counts that make a run worth a verdict: some clients were served,
// and denied, in what is left between the faults.
func (o Options) gates() map[string]int64 {
	return map[string]int64{"operations": int64(o.Time.Seconds() * o.Rate / 20), "denied_percent": 5, "allowed_percent": 5}
}

// nemeses are the faults that the lab can make, and why it cannot make the others. Of
// all, those that need slow links are wanted only where the lab has them.
func (o Options) nemeses(able func(lab.Ability) error) (can, cannot []nemesis.Nemesis, skipped []string, err error) {
	wanted, err := nemesis.Find(o.Nemeses)
	if o.Nemeses == "all" && !o.Slow {
		wanted = slices.DeleteFunc(wanted, func(n nemesis.Nemesis) bool { return slices.Contains(n.Needs, lab.Delay) })
	}
	why := map[lab.Ability][]string{}
	for _, n := range wanted {
		i := slices.IndexFunc(n.Needs, func(a lab.Ability) bool { return able(a) != nil })
		if i < 0 {
			can = append(can, n)
			continue
		}
		cannot = append(cannot, n)
		why[n.Needs[i]] = append(why[n.Needs[i]], n.Name)
	}
	for _, a := range slices.Sorted(maps.Keys(why)) {
		skipped = append(skipped, fmt.Sprintf("%s: %v", strings.Join(why[a], ", "), able(a)))
	}
	return can, cannot, skipped, err
}
