package lab

import (
	"fmt"
	"os"
	"os/exec"
)

// abilities says what the options or this machine exclude.
func (l *lab) abilities() map[Ability]error {
	unable := map[Ability]error{}
	exclude := func(why string, all ...Ability) {
		for _, a := range all {
			if unable[a] == nil {
				unable[a] = fmt.Errorf("%w: %s", ErrUnable, why)
			}
		}
	}
	switch {
	case l.o.Proxy:
		exclude("proxies lose and delay nothing", Delay)
	case !l.o.Slow:
		exclude("a bridge has no delays, a lab with Slow has", Delay)
	}
	if !l.o.Disks {
		exclude("the lab was opened without disks", PowerCut, DiskFull)
	}
	if !Inside() {
		exclude("a disk of its own needs root and a mount namespace", PowerCut, DiskFull)
		exclude("a control group needs root", CPUQuota)
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		exclude("mkfs.ext4 is not installed (apt-get install e2fsprogs)", PowerCut, DiskFull)
	}
	if !l.o.Clocks {
		exclude("the lab was opened without clocks", WallTime)
	}
	if _, err := exec.LookPath("strace"); err != nil {
		exclude("strace is not installed (apt-get install strace)", SlowDisk)
	}
	if os.Geteuid() != 0 {
		exclude("strace of another process needs root", SlowDisk)
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		exclude("there is no /dev/net/tun", Delay)
	}
	if l.o.Older == "" {
		exclude("there is no binary of an older commit: "+l.o.NoOlder, Older)
	}
	return unable
}

// Able says whether the lab can do something. Cuts per direction and port are to be
// had with proxies too, for TCP: see proxies for what they lack.
func (l *lab) Able(a Ability) error { return l.unable[a] }
