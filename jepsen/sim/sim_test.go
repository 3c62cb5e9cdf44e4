package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds   = flag.Int("seeds", 0, "how many seeds TestSeeds runs; 0: 4, with -short 2")
	first   = flag.Uint64("seed", 1, "the first of them")
	minutes = flag.Float64("minutes", 1, "virtual minutes of faults for each")
	workers = flag.Int("workers", 1, "seeds at the same time")
	diaries = flag.String("diary", "", "write what the nodes of a seed that fails have logged to this file")
	keep    = flag.Bool("keep-going", false, "run all seeds, though one has failed")
)

// inChild says that this process is one seed. A bubble leaves its channels behind in
// the pools of the packages, so a process has one bubble; and a panic, or a lock that is
// held while virtual time should go by, ends one seed and not all.
const inChild = "LIMITD_SIM_SEED"

// resultLine begins the line with which such a process tells its result.
const resultLine = "sim result: "

// tagged is what go test needs for this build: with crash points a seed draws other
// faults.
var tagged = map[bool]string{true: " -tags failpoint"}[crashPoints != nil]

// TestSeeds simulates a cluster under faults once for each seed, and says how a seed
// that fails is run again.
func TestSeeds(t *testing.T) {
	if s := os.Getenv(inChild); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		runHere(t, seed)
		return
	}
	n := *seeds
	if n == 0 {
		n = 4
		if testing.Short() {
			n = 2
		}
	}
	begun := time.Now()
	var (
		mu    sync.Mutex
		sum   = total{Result: Result{Counts: map[string]int{}, Ends: map[string]int{}}}
		stop  bool
		wg    sync.WaitGroup
		queue = make(chan uint64, n)
	)
	for i := range n {
		queue <- *first + uint64(i)
	}
	close(queue)
	for range max(*workers, 1) {
		wg.Go(func() {
			for seed := range queue {
				mu.Lock()
				over := stop
				mu.Unlock()
				if over {
					return
				}
				r, err := runChild(seed)
				mu.Lock()
				sum.add(r)
				if err != nil {
					stop = !*keep
					t.Fail()
					fmt.Printf("FAIL seed %d:\n%v\nagain: go test%s ./jepsen/sim -run TestSeeds -seeds 1 -seed %d -minutes %v -diary FILE\n", seed, err, tagged, seed, *minutes)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	fmt.Printf("%s\n%d seeds, %.0f virtual minutes in %.0f s\n", sum, sum.seeds, sum.Virtual.Minutes(), time.Since(begun).Seconds())
	if sum.seeds > 0 && (sum.Counts["answered"] == 0 || sum.Counts["entries"] == 0) {
		t.Error("nothing was decided")
	}
}

// runHere runs a seed in a bubble of this process. The result is told before the bubble
// ends, since that panics if goroutines are left.
func runHere(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		r := Run(Config{Seed: seed, Length: time.Duration(*minutes * float64(time.Minute)), Dir: os.Getenv("LIMITD_SIM_DIR")})
		if *diaries != "" && len(r.Violations) > 0 {
			if err := os.WriteFile(*diaries, []byte(r.Diary), 0o600); err != nil {
				t.Error(err)
			}
		}
		r.Diary = ""
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\n%s%s\n", resultLine, b)
	})
}

// childTime is what a seed may take on a machine that does other things as well.
func childTime() time.Duration {
	return 2*time.Minute + time.Duration(*minutes*float64(time.Minute))
}

// runChild runs a seed in a process of its own.
func runChild(seed uint64) (Result, error) {
	var r Result
	dir, err := os.MkdirTemp(filesDir(), "limitd-sim-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), childTime())
	defer cancel()
	args := []string{"-test.run", "^TestSeeds$", "-test.timeout", "0", "-minutes", fmt.Sprint(*minutes)}
	if *diaries != "" {
		args = append(args, "-diary", *diaries)
	}
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", inChild, seed), "LIMITD_SIM_DIR="+dir, "GOTRACEBACK=all")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // and its goroutines tell
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return r, fmt.Errorf("virtual time stands still: the seed is not done after %s\n%s", childTime(), begin(out, 400))
	}
	_, rest, told := bytes.Cut(out, []byte(resultLine))
	if told {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		if err := json.Unmarshal(line, &r); err != nil {
			return r, err
		}
		if len(r.Violations) > 0 {
			return r, errors.New(strings.Join(r.Violations, "\n"))
		}
	}
	switch left := leftBehind(rest); {
	case told && err == nil:
		return r, nil
	case told && len(left) > 0:
		for _, g := range left {
			if !ofTransfer(g) {
				return r, fmt.Errorf("goroutines are left that wait for ever:\n%s", strings.Join(left, "\n\n"))
			}
		}
		r.Counts["transfers whose goroutines were left"]++
		return r, nil
	}
	return r, fmt.Errorf("%w\n%s", err, begin(out, 150))
}

// leftBehind are the goroutines that a bubble ended with, if it says that there were any.
func leftBehind(out []byte) (left []string) {
	if !bytes.Contains(out, []byte("blocked goroutines remain")) {
		return nil
	}
	for _, g := range strings.Split(string(out), "\n\n") {
		if first, _, _ := strings.Cut(g, "\n"); strings.HasPrefix(first, "goroutine ") && strings.Contains(first, "synctest bubble") {
			left = append(left, g)
		}
	}
	return left
}

// ofTransfer tells what hashicorp/raft (#696) leaves when a leadership is lost in the
// middle of a transfer: the two goroutines of the transfer. That the node refuses writes
// from then on is what matters, and what it ends itself for.
func ofTransfer(goroutine string) bool {
	return strings.Contains(goroutine, "raft.(*Raft).leadershipTransfer(") || strings.Contains(goroutine, "raft.(*Raft).leaderLoop.func2(")
}

// begin is the first lines of an output.
func begin(b []byte, lines int) []byte {
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return bytes.Join(all[:min(lines, len(all))], []byte("\n"))
}

// filesDir is where the nodes' files go: to memory if there is room, since nothing is
// lost there that a simulated crash does not lose.
func filesDir() string {
	var st syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &st); err == nil && int64(st.Bavail)*st.Bsize > 512<<20 {
		return "/dev/shm"
	}
	return ""
}

// total adds up results.
type total struct {
	Result
	seeds int
}

func (t *total) add(r Result) {
	t.seeds++
	t.Virtual += r.Virtual
	t.Longest, t.Recovery = max(t.Longest, r.Longest), max(t.Recovery, r.Recovery)
	for k, n := range r.Counts {
		t.Counts[k] += n
	}
	for k, n := range r.Ends {
		t.Ends[k] += n
	}
}

func (t total) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(t.Counts)) {
		fmt.Fprintf(&b, "%8d %s\n", t.Counts[k], k)
	}
	for _, k := range slices.Sorted(maps.Keys(t.Ends)) {
		fmt.Fprintf(&b, "%8d nodes ended themselves: %s\n", t.Ends[k], k)
	}
	fmt.Fprintf(&b, "longest time without an answer %s, longest recovery %s", t.Longest.Round(time.Millisecond), t.Recovery.Round(time.Millisecond))
	return b.String()
}
