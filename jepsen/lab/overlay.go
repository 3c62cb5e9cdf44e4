package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What a binary built by BuildWithClock reads in its environment.
const (
	// wallEnv names the file with the offset of the wall clock: 8 bytes, little endian, ns.
	wallEnv = "LIMITD_LAB_WALL"
	// routesEnv says what to dial instead of what: FROM=TO,FROM=TO,…
	routesEnv = "LIMITD_LAB_ROUTES"
)

// change is one change of the standard library: in a file a line, of which there
// must be one, gets more lines behind it, which use what a new file defines.
type change struct {
	file, line, more string
	newFile          string
	source           string
}

var changes = []change{
	// The wall reading gets the offset; the monotonic one is left alone.
	{file: "time/time.go", line: "\tsec, nsec, mono := runtimeNow()\n", more: `	if labWall != nil {
		w := sec*1e9 + int64(nsec) + *labWall
		sec, nsec = w/1e9, int32(w%1e9)
	}
`, newFile: "time/lab.go", source: `package time

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
`},
	{file: "net/dial.go", line: "func (d *Dialer) DialContext(ctx context.Context, network, address string) (Conn, error) {\n", more: `	if to, ok := labRoutes[address]; ok {
		address = to
	}
`, newFile: "net/lab.go", source: `package net

import "syscall"

// labRoutes says what to dial instead of what.
var labRoutes = func() map[string]string {
	text, _ := syscall.Getenv("` + routesEnv + `")
	routes := map[string]string{}
	from, begun := "", 0
	for i, c := range text + "," {
		switch c {
		case '=':
			from, begun = text[begun:i], i+1
		case ',':
			routes[from] = text[begun:i]
			begun = i + 1
		}
	}
	return routes
}()
`},
}

// BuildWithClock builds a package's program with a standard library that obeys the
// lab: time.Now, so that the wall clock of one process can be moved and the machine's
// is never touched; and net.Dial, so that a lab without namespaces can stand between
// nodes. dir keeps the changed sources; tags may be empty. The package is of the module
// in module, empty for the one around the working directory; if it is not, out and dir
// are absolute. Where the sources lie makes no difference to the binary, so that those
// that are unpacked again, elsewhere, are not compiled again.
func BuildWithClock(out, module, pkg, tags, dir string) error {
	env := exec.Command("go", "env", "GOROOT")
	env.Dir = module
	root, err := env.Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	overlay, err := writeOverlay(filepath.Join(strings.TrimSpace(string(root)), "src"), dir)
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-overlay", overlay, "-tags", tags, "-o", out, pkg)
	build.Dir = module
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %s", pkg, err, said)
	}
	return nil
}

// writeOverlay changes the library whose sources lie in src, and returns the file for
// go build's -overlay. A library that is not as it was is refused rather than guessed at.
func writeOverlay(src, dir string) (overlay string, err error) {
	replace := map[string]string{}
	write := func(name, text string) {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[filepath.Join(src, name)] = file
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
	}
	for _, c := range changes {
		text, err := os.ReadFile(filepath.Join(src, c.file))
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(text), c.line); n != 1 {
			return "", fmt.Errorf("%s: %q is there %d times, want once: this version of Go needs another change (jepsen/lab/overlay.go)", filepath.Join(src, c.file), c.line, n)
		}
		write(c.file, strings.Replace(string(text), c.line, c.line+c.more, 1))
		write(c.newFile, c.source)
	}
	b, merr := json.Marshal(map[string]map[string]string{"Replace": replace})
	overlay = filepath.Join(dir, "overlay.json")
	if err == nil {
		err = merr
	}
	if err == nil {
		err = os.WriteFile(overlay, b, 0o600)
	}
	return overlay, err
}

// obeys says that a binary was built by BuildWithClock.
func obeys(binary string) (bool, error) {
	b, err := os.ReadFile(binary)
	return strings.Contains(string(b), routesEnv), err
}
