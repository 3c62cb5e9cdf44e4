package lab

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// taps is a segment whose switch is this process: each endpoint's eth0 is a TAP
// device that the switch reads frames from and writes frames to. That costs time on
// the processor, and can do to each frame what the kernel here cannot.
type taps struct {
	namespaces
	ports []*os.File // in the order of ends
	rules atomic.Pointer[[][]rule]
	late  *delayLine
	seed  uint64
	alive sync.WaitGroup
}

func newTaps(ids []string, seed uint64) (*taps, error) {
	t := &taps{late: newDelayLine(), seed: seed}
	return t, all("make the lab's switch", func() error { return t.make(ids) }, t.plug, t.settle, t.run)
}

// plug makes the devices. The last byte of an endpoint's MAC address is its port.
func (t *taps) plug() error {
	var lines strings.Builder
	for i, end := range t.ends {
		name := fmt.Sprintf("tap%d", i)
		f, err := openTap(name)
		if err != nil {
			return err
		}
		t.ports = append(t.ports, f)
		fmt.Fprintf(&lines, "link set %s address 02:00:00:00:00:%02x\n", name, i)
		if end == Client {
			fmt.Fprintf(&lines, "addr add %s/24 dev %s\nlink set %s up\n", t.host(end), name, name)
		} else {
			fmt.Fprintf(&lines, "link set %s netns %s name eth0\n", name, end)
		}
	}
	return batch(&lines)()
}

func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make TAP device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// run starts to pass frames on.
func (t *taps) run() error {
	t.obey()
	t.alive.Go(t.late.run)
	for i := range t.ports {
		t.alive.Go(func() { t.pass(i) })
	}
	return nil
}

func (t *taps) Cut(cuts []Cut) error {
	if err := t.check(cuts); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cuts = slices.Clone(cuts)
	t.obey()
	return nil
}

func (t *taps) Shape(links map[Cut]Quality) error {
	if err := t.check(slices.Collect(maps.Keys(links))); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shapes = maps.Clone(links)
	t.obey()
	return nil
}

// obey makes rules of the cuts and qualities, for all frames from now on.
func (t *taps) obey() {
	rules := make([][]rule, len(t.ends))
	for i, from := range t.ends {
		rules[i] = make([]rule, len(t.ends))
		for j, to := range t.ends {
			r := &rules[i][j]
			for _, c := range t.cuts {
				if c.From != from || c.To != to {
					continue
				}
				switch c.Port {
				case AnyPort:
					r.cut = true
				case PeerPort:
					r.peerCut = true
				case RESPPort:
					r.respCut = true
				}
			}
			for link, q := range t.shapes {
				if link.From == from && link.To == to {
					r.Quality = q
				}
			}
		}
	}
	t.rules.Store(&rules)
}

func (t *taps) close() error {
	var err error
	for _, f := range t.ports {
		err = errors.Join(err, f.Close())
	}
	t.late.stop()
	t.alive.Wait()
	return errors.Join(err, t.namespaces.close())
}
