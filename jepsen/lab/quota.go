package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// quota is a control group that bounds the processor time of a node.
type quota struct {
	dir   string
	write func(us int) error // per quotaPeriod; 0: no bound
}

const quotaPeriod = 20 * time.Millisecond

// Where control groups of the two kinds are mounted.
const (
	cgroups   = "/sys/fs/cgroup"
	cpuGroups = cgroups + "/cpu"
)

// newQuota makes a control group without a bound.
func newQuota() (*quota, error) {
	if _, err := os.Stat(cpuGroups); err != nil {
		return newUnifiedQuota()
	}
	return makeQuota(cpuGroups, func(dir string, us int) error {
		if us == 0 {
			us = -1
		}
		return errors.Join(set(dir, "cpu.cfs_period_us", fmt.Sprint(quotaPeriod.Microseconds())), set(dir, "cpu.cfs_quota_us", fmt.Sprint(us)))
	})
}

// newUnifiedQuota is newQuota where there is version 2 alone.
func newUnifiedQuota() (*quota, error) {
	b, err := os.ReadFile(cgroups + "/cgroup.subtree_control")
	if err == nil && !strings.Contains(string(b), "cpu") {
		err = set(cgroups, "cgroup.subtree_control", "+cpu")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: no control group for processor time: %v", ErrUnable, err)
	}
	return makeQuota(cgroups, func(dir string, us int) error {
		bound := "max"
		if us > 0 {
			bound = fmt.Sprint(us)
		}
		return set(dir, "cpu.max", fmt.Sprint(bound, " ", quotaPeriod.Microseconds()))
	})
}

func makeQuota(parent string, write func(dir string, us int) error) (*quota, error) {
	dir, err := os.MkdirTemp(parent, "limitd-lab-")
	if err != nil {
		return nil, fmt.Errorf("%w: no control group for processor time: %v", ErrUnable, err)
	}
	q := &quota{dir: dir, write: func(us int) error { return write(dir, us) }}
	if err := errors.Join(tellGuard("rmdir", dir), q.bound(0.5), q.bound(0)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: control group for processor time: %v", ErrUnable, err), q.close())
	}
	return q, nil
}

func set(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600)
}

// bound sets the share of one processor; 0 or 1 and more: all that there is.
func (q *quota) bound(share float64) error {
	if share <= 0 || share >= 1 {
		return q.write(0)
	}
	return q.write(max(1000, int(share*float64(quotaPeriod.Microseconds())))) // the kernel's least is 1 ms
}

// hold puts a process into the group.
func (q *quota) hold(pid int) error { return set(q.dir, "cgroup.procs", fmt.Sprint(pid)) }

// close removes the group. Its processes must be gone.
func (q *quota) close() error { return os.Remove(q.dir) }
