package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// resolve turns a bound on memory into bytes.
func (m Memory) resolve() (int64, error) {
	if m.Percent == 0 {
		return m.Bytes, nil
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("ask for the machine's memory (write a size such as \"1GiB\" instead of a share): %w", err)
	}
	total := int64(info.Totalram) * int64(info.Unit)
	return min(total, containerMemory("/sys/fs/cgroup", total)) / 100 * int64(m.Percent), nil
}

// containerMemory is the memory limit of the container that we run in, or none
// if there is no limit. The root of a cgroup mount is the container's own group
// when it has a namespace of its own, as containers do.
func containerMemory(root string, none int64) int64 {
	for _, file := range []string{"/memory.max", "/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(root + file)
		if err != nil {
			continue
		}
		if v, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && v > 0 {
			return v
		}
	}
	return none
}
