package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nowBegins is how time.Now begins in the standard library that this was written
// for; another one is refused rather than guessed at.
const nowBegins = "\tsec, nsec, mono := runtimeNow()\n"

// nowMoved adds the offset to the wall reading and leaves the monotonic one alone.
const nowMoved = nowBegins + `	if labWall != nil {
		w := sec*1e9 + int64(nsec) + *labWall
		sec, nsec = w/1e9, int32(w%1e9)
	}
`

const labClock = `package time

import (
	"syscall"
	"unsafe"
)

// labWall is the offset of this process's wall clock, ns.
var labWall = func() *int64 {
	name, ok := syscall.Getenv("` + wallEnv + `")
	if !ok {
		return nil
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic("lab clock: " + name + ": " + err.Error())
	}
	mem, err := syscall.Mmap(fd, 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("lab clock: " + name + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&mem[0]))
}()
`

// BuildWithClock builds a package's program with a standard library whose time.Now
// obeys the lab, so that the wall clock of one process can be moved: the machine's
// is never touched. dir keeps the changed sources; tags may be empty.
func BuildWithClock(out, pkg, tags, dir string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), nowBegins); n != 1 {
		return fmt.Errorf("%s is not as it was: time.Now should begin once with %q and does %d times", source, nowBegins, n)
	}
	moved, clock, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "lab.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {source: moved, filepath.Join(filepath.Dir(source), "lab.go"): clock}})
	if err != nil {
		return err
	}
	for file, b := range map[string][]byte{
		moved:   []byte(strings.Replace(string(text), nowBegins, nowMoved, 1)),
		clock:   []byte(labClock),
		overlay: replaced,
	} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			return err
		}
	}
	return command("", "go", "build", "-buildvcs=false", "-overlay", overlay, "-tags", tags, "-o", out, pkg)
}
