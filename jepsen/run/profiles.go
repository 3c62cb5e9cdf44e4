package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// profiles are options that belong together, each with its name. What a profile names
// may be changed by the flag of the same name.
var profiles = map[string]Options{
	"run":      {Nemeses: "all", Time: 25 * time.Second, Nodes: 3, Workers: 12, Rate: 400},
	"none":     {Nemeses: "none", Time: 20 * time.Second, Nodes: 3, Workers: 12, Rate: 400},
	"soak":     {Nemeses: "all", Time: time.Minute, Nodes: 3, Workers: 24, Rate: 500},
	"selftest": {Nemeses: "none", Time: 6 * time.Second, Nodes: 3, Workers: 12, Rate: 400},
	"slow":     {Nemeses: "all", Time: time.Minute, Nodes: 3, Workers: 12, Rate: 200, Slow: true},

	// What every change goes through: each kind of fault, mixed with its kin.
	"ci-network": {Time: 18 * time.Second, Nodes: 3, Workers: 12, Rate: 400,
		Nemeses: "isolate-leader,halves,bridge,mute,peers-only,clients-only,sever,kill-leader,kill-after-ack,kill-majority,pause,stop,transfer,transfer-storm"},
	"ci-machines": {Time: 18 * time.Second, Nodes: 3, Workers: 12, Rate: 400,
		Nemeses: "power-one,power-all,kill-all,lag,clock-leader,clock-all,clock-strobe,remove-leader,replace,demote,remove-partitioned"},
	"ci-disks": {Time: 18 * time.Second, Nodes: 3, Workers: 12, Rate: 400,
		Nemeses: "disk-full-leader,disk-stall-leader,disk-stall-follower,disk-slow-leader,disk-error-follower,damage-flip,damage-old,hostile-bytes,slow-cpu,power-majority"},
}

// CI are the profiles of every change.
var CI = []string{"ci-network", "ci-machines", "ci-disks"}

// Profile returns the options with this name.
func Profile(name string) (Options, error) {
	o, ok := profiles[name]
	if !ok {
		return o, fmt.Errorf("-profile: there is no profile %q: there are %s", name, strings.Join(Profiles(), ", "))
	}
	o.Profile, o.Seed, o.Env = name, 1, map[string]string{}
	return o, nil
}

// Profiles are their names.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles)) }
