package cluster

import (
	"testing"
	"time"
)

// clockCase is something that happens to clocks and nodes, and by how much cluster
// time may then differ from the time that truly went by. 0 is no nanosecond.
type clockCase struct {
	name   string
	happen func(w *world)

	// gain is by how much cluster time may get ahead. It is the refill that nobody
	// waited for: of each key at most one full bucket.
	gain time.Duration
	// most says that it must get ahead by all of gain, or that what it loses must be
	// all of lose: the case is about that.
	most bool
	// lose is by how much it may fall behind, beside what a busy machine takes.
	lose time.Duration
}

const (
	hour  = time.Hour
	day   = 24 * hour
	years = 3653 * day // ten

	away   = 30 * time.Minute // how long what is stopped stays away
	costly = 3 * time.Second  // what a hand-over and a busy machine may lose
)

// The keys: of whose buckets an hour refills a little, and more than all.
func clockTaps(t *testing.T) []tap {
	return []tap{
		newTap(t, 9, 10, 10*hour),     // one unit an hour
		newTap(t, 4, 1, time.Minute),  // full in 5 minutes
		newTap(t, 99, 1, time.Second), // full in 100 seconds
		newTap(t, 1, 1, 30*day),       // full in two months
	}
}

var wallErrors = []struct {
	name string
	by   time.Duration
}{{"an hour ahead", hour}, {"an hour behind", -hour}, {"ten years ahead", years}, {"ten years behind", -years}}

// While nodes run, and over the restart of those whose machine was not rebooted,
// wall clocks mean nothing, on whichever nodes they are wrong.
func wallsWhileRunning() (cases []clockCase) {
	for _, e := range wallErrors {
		cases = append(cases,
			clockCase{name: "leader's wall clock " + e.name, happen: func(w *world) {
				l, f, _ := w.roles()
				w.wallWrong(e.by, l)
				w.pass(away)
				w.lead(f)
			}},
			clockCase{name: "follower's wall clock " + e.name + ", then it leads", happen: func(w *world) {
				_, f, _ := w.roles()
				w.wallWrong(e.by, f)
				w.pass(away)
				w.lead(f)
			}},
			clockCase{name: "all wall clocks " + e.name, happen: func(w *world) {
				_, f, _ := w.roles()
				w.wallWrong(e.by, w.nodes...)
				w.pass(away)
				w.lead(f)
			}})
	}
	return append(cases, clockCase{name: "leader cut off, each wall clock wrong in another way", happen: func(w *world) {
		l, f, g := w.roles()
		w.wallWrong(years, l)
		w.wallWrong(-hour, f)
		w.wallWrong(hour, g)
		w.sever(l)
		w.lead(f)
		w.heal()
	}})
}

func wallsAcrossRestart() (cases []clockCase) {
	for i, e := range wallErrors {
		killed := i%2 == 0
		cases = append(cases,
			clockCase{name: "leader restarts with its wall clock " + e.name + ", and leads again", happen: func(w *world) {
				l, f, _ := w.roles()
				w.halt(killed, l)
				w.wallWrong(e.by, l)
				w.lead(f)
				w.pass(away)
				w.restart(l)
				w.settle() // or it would lose the election
				w.lead(l)
			}},
			clockCase{name: "a majority restarts with wall clocks " + e.name, happen: func(w *world) {
				l, f, _ := w.roles()
				w.halt(!killed, l, f)
				w.wallWrong(e.by, l, f)
				w.passed.Add(int64(away))
				w.restart(l, f)
				w.lead(f)
			}},
			clockCase{name: "all restart with wall clocks " + e.name, happen: func(w *world) {
				l, _, _ := w.roles()
				w.halt(killed, w.nodes...)
				w.wallWrong(e.by, w.nodes...)
				w.pass(away)
				w.restart(w.nodes...)
				w.lead(l)
			}})
	}
	return cases
}

// One machine is rebooted: there is nothing to ask a wall clock for.
func rebootOfOne() (cases []clockCase) {
	cases = append(cases, clockCase{name: "follower's machine rebooted, then it leads", happen: func(w *world) {
		_, f, _ := w.roles()
		rebootOne(w, f, 0)
	}})
	for _, e := range wallErrors {
		cases = append(cases,
			clockCase{name: "leader's machine rebooted, its wall clock " + e.name, happen: func(w *world) {
				l, _, _ := w.roles()
				rebootOne(w, l, e.by, l)
			}},
			clockCase{name: "follower's machine rebooted, a majority of the wall clocks " + e.name, happen: func(w *world) {
				_, f, g := w.roles()
				rebootOne(w, f, e.by, f, g)
			}},
			clockCase{name: "leader's machine rebooted, all wall clocks " + e.name, happen: func(w *world) {
				l, _, _ := w.roles()
				rebootOne(w, l, e.by, w.nodes...)
			}})
	}
	return cases
}

func rebootOne(w *world, n *testNode, by time.Duration, wrong ...*testNode) {
	w.halt(false, n)
	if other := w.others(n)[0]; !w.others(n)[1].Leading() {
		w.lead(other)
	}
	w.pass(away)
	w.reboot(n)
	w.wallWrong(by, wrong...)
	w.restart(n)
	w.settle() // or it would lose the election
	w.lead(n)
}

// Two machines are rebooted while all nodes are down; the third knows the time.
func rebootOfAMajority() (cases []clockCase) {
	reboot := func(w *world, by time.Duration, wrong func(keeper, x, y *testNode) []*testNode) {
		keeper, x, y := w.roles()
		w.halt(true, w.nodes...)
		w.pass(away)
		w.reboot(x, y)
		w.wallWrong(by, wrong(keeper, x, y)...)
		w.restart(keeper, x, y)
		w.lead(x)
	}
	cases = append(cases, clockCase{name: "a majority rebooted", happen: func(w *world) {
		reboot(w, 0, func(_, _, _ *testNode) []*testNode { return nil })
	}})
	for _, e := range wallErrors {
		cases = append(cases,
			clockCase{name: "a majority rebooted, one of its wall clocks " + e.name, happen: func(w *world) {
				reboot(w, e.by, func(_, x, _ *testNode) []*testNode { return []*testNode{x} })
			}},
			clockCase{name: "a majority rebooted, both of its wall clocks " + e.name, happen: func(w *world) {
				reboot(w, e.by, func(_, x, y *testNode) []*testNode { return []*testNode{x, y} })
			}},
			clockCase{name: "a majority rebooted, all wall clocks " + e.name, happen: func(w *world) {
				reboot(w, e.by, func(k, x, y *testNode) []*testNode { return []*testNode{k, x, y} })
			}})
	}
	return cases
}

// All machines are rebooted: cluster time goes on from the lowest wall clock of a
// majority. This is the first case that names an extra burst: where a majority of
// the wall clocks is ahead, time is gained, by as much as the least of them.
func rebootOfAll() []clockCase {
	reboot := func(by time.Duration, count int) func(w *world) {
		return func(w *world) {
			l, f, _ := w.roles()
			w.halt(true, w.nodes...)
			w.pass(away)
			w.reboot(w.nodes...)
			switch count {
			case 1:
				w.wallWrong(by, l)
			case 2:
				w.wallWrong(by, l, f)
			case 3:
				w.wallWrong(by, w.nodes...)
			}
			w.restart(w.nodes...)
			w.lead(l)
		}
	}
	return []clockCase{
		{name: "all rebooted", happen: reboot(0, 0)},
		{name: "all rebooted, one wall clock an hour ahead", happen: reboot(hour, 1)},
		{name: "all rebooted, one wall clock ten years ahead", happen: reboot(years, 1)},
		{name: "all rebooted, one wall clock an hour behind", happen: reboot(-hour, 1), lose: away},
		{name: "all rebooted, one wall clock ten years behind", happen: reboot(-years, 1), lose: away},
		// If the third is not heard in time, the two that are wrong are a majority.
		{name: "all rebooted, two wall clocks an hour ahead", happen: reboot(hour, 2), gain: hour},
		{name: "all rebooted, two wall clocks ten years ahead", happen: reboot(years, 2), lose: away},
		{name: "all rebooted, two wall clocks an hour behind", happen: reboot(-hour, 2), lose: away, most: true},
		{name: "all rebooted, two wall clocks ten years behind", happen: reboot(-years, 2), lose: away, most: true},
		{name: "all rebooted, all wall clocks an hour ahead", happen: reboot(hour, 3), gain: hour, most: true},
		{name: "all rebooted, all wall clocks 300 days ahead", happen: reboot(300*day, 3), gain: 300 * day, most: true},
		{name: "all rebooted, all wall clocks an hour behind", happen: reboot(-hour, 3), lose: away, most: true},
		// More than 400 days ahead is not believed.
		{name: "all rebooted, all wall clocks ten years ahead", happen: reboot(years, 3), lose: away, most: true},
		{name: "all rebooted, all wall clocks ten years behind", happen: reboot(-years, 3), lose: away, most: true},
		// The two that are up cannot know that the third machine was not rebooted.
		{name: "a majority rebooted and the third node away, wall clocks right", happen: rebootWithoutThird(0)},
		{name: "a majority rebooted and the third node away, wall clocks an hour ahead", happen: rebootWithoutThird(hour), gain: hour, most: true},
	}
}

func rebootWithoutThird(by time.Duration) func(w *world) {
	return func(w *world) {
		keeper, x, y := w.roles()
		w.halt(true, w.nodes...)
		w.pass(away)
		w.reboot(x, y)
		w.wallWrong(by, x, y)
		w.restart(x, y)
		w.lead(x)
		w.settle()
		w.restart(keeper)
	}
}

// The boot clock of a machine that sleeps goes on, which is right. One that jumps
// without a reason is the second case that names an extra burst: if it leads, or
// comes to lead before it has heard of the time again.
func bootClocks() []clockCase {
	return []clockCase{
		{name: "leader sleeps and finds another one when it wakes", happen: func(w *world) {
			l, f, _ := w.roles()
			w.sever(l)
			w.lead(f)
			w.passed.Add(int64(away))
			w.settle(l)
			w.heal()
			w.settle()
			w.lead(l)
		}},
		{name: "all sleep", happen: func(w *world) { w.pass(10 * hour) }},
		{name: "follower sleeps, wakes and leads", happen: func(w *world) {
			_, f, _ := w.roles()
			w.sever(f)
			w.passed.Add(int64(away))
			w.settle(f)
			w.heal()
			w.settle()
			w.lead(f)
		}},
		{name: "boot clock of a follower jumps an hour ahead, then it leads", happen: func(w *world) {
			_, f, _ := w.roles()
			w.bootWrong(hour, f)
			w.settle()
			w.lead(f)
		}},
		{name: "boot clock of a follower jumps ten years ahead, then it leads", happen: func(w *world) {
			_, f, _ := w.roles()
			w.bootWrong(years, f)
			w.settle()
			w.lead(f)
		}},
		{name: "boot clock of a follower jumps an hour back, then it leads", happen: func(w *world) {
			_, f, _ := w.roles()
			w.bootWrong(-hour, f)
			w.settle()
			w.lead(f)
		}},
		{name: "boot clock jumps an hour ahead just before the node leads", happen: func(w *world) {
			_, f, _ := w.roles()
			w.cutAndLead(f, hour)
		}, gain: hour},
		{name: "boot clock jumps ten years ahead just before the node leads", happen: func(w *world) {
			_, f, _ := w.roles()
			w.cutAndLead(f, years)
		}},
		{name: "leader's boot clock jumps an hour ahead", happen: func(w *world) {
			l, _, _ := w.roles()
			w.bootWrong(hour, l)
			w.settle()
		}, gain: hour, most: true},
		{name: "leader's boot clock jumps 399 days ahead", happen: func(w *world) {
			l, _, _ := w.roles()
			w.bootWrong(399*day, l)
			w.settle()
		}, gain: 399 * day, most: true},
		{name: "leader's boot clock jumps ten years ahead", happen: func(w *world) {
			l, _, _ := w.roles()
			w.bootWrong(years, l)
			w.settle()
		}},
		{name: "leader's boot clock jumps ten years ahead again and again", happen: func(w *world) {
			l, _, _ := w.roles()
			for range 10 {
				w.bootWrong(years, l)
				w.settle()
			}
		}},
		{name: "leader's boot clock jumps ten years ahead, then another one leads", happen: func(w *world) {
			l, f, _ := w.roles()
			w.bootWrong(years, l)
			w.lead(f)
		}},
		{name: "leader's boot clock jumps an hour back and stands still", happen: func(w *world) {
			l, _, _ := w.roles()
			w.bootWrong(-hour, l)
			w.pass(away)
		}, lose: away, most: true},
		{name: "a leader that is cut off stamps the future, and leads again", happen: func(w *world) {
			l, f, _ := w.roles()
			w.sever(l)
			w.bootWrong(300*day, l)
			before, _ := l.logs.LastIndex()
			go tryPut(l, "never committed")
			eventually(w.t, "the entry to be in its log", func() bool { last, _ := l.logs.LastIndex(); return last > before })
			w.lead(f)
			w.heal()
			w.settle()
			w.lead(l)
		}},
	}
}

// cutAndLead moves the boot clock of a node and has it lead, without a batch of the
// old leader's between.
func (w *world) cutAndLead(n *testNode, by time.Duration) {
	w.t.Helper()
	old := w.leader()
	w.sever(old)
	w.bootWrong(by, n)
	w.lead(n)
	w.heal()
}

func TestRefillNeverExceedsElapsedTimeWhateverTheClocksSay(t *testing.T) {
	for name, cases := range map[string][]clockCase{
		"wall clocks while nodes run": wallsWhileRunning(),
		"wall clocks across restarts": wallsAcrossRestart(),
		"one machine rebooted":        rebootOfOne(),
		"a majority rebooted":         rebootOfAMajority(),
		"all machines rebooted":       rebootOfAll(),
		"boot clocks":                 bootClocks(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, tc := range cases {
				w.check(t, tc, clockTaps(t))
			}
		})
	}
}

// check has the keys drained, lets the case happen, and has them drained again.
func (w *world) check(t *testing.T, tc clockCase, taps []tap) {
	t.Helper()
	w.settle()
	before := w.drain(taps)
	w.best = max(w.best, before.at-before.from)
	w.wallsRight(before.at, before.to)
	tc.happen(w)
	after := w.drain(taps)
	w.best += int64(tc.gain)

	moved := after.at - before.at
	if moved < 0 {
		t.Errorf("%s: cluster time went back by %s", tc.name, time.Duration(-moved))
	}
	ahead := time.Duration(moved - (after.to - before.from))  // at least
	behind := time.Duration((after.from - before.to) - moved) // at least
	switch {
	case after.at > after.to+w.best:
		t.Errorf("%s: cluster time gained %s, allowed are %s", tc.name, ahead, tc.gain)
	case behind > tc.lose+costly:
		t.Errorf("%s: cluster time lost %s, allowed are %s", tc.name, behind, tc.lose)
	case tc.most && tc.gain > 0 && ahead < tc.gain-costly, tc.most && tc.lose > 0 && behind < tc.lose-costly:
		t.Errorf("%s: cluster time gained %s, lost %s; what the case is about did not happen", tc.name, ahead, behind)
	}
	for _, tp := range taps {
		w.checkTap(t, tc, tp, before, after)
	}
	for _, n := range w.nodes {
		if err := n.fatalReason(); err != nil {
			t.Fatalf("%s: %s stopped: %v", tc.name, n.cfg.ID, err)
		}
		if local, ok := n.Touch(); ok && local > w.now()+w.best {
			t.Errorf("%s: %s denies by a time that is %s ahead", tc.name, n.cfg.ID, time.Duration(local-w.now()-w.best))
		}
	}
	if tc.gain != 0 || tc.lose != 0 {
		w.best = after.at - after.from
	}
}

// checkTap counts units. The bucket was empty but for a part of one unit.
func (w *world) checkTap(t *testing.T, tc clockCase, tp tap, before, after drained) {
	t.Helper()
	got, burst := after.units[tp.name], tp.limit.Burst
	refilled := func(d int64) int64 { return min(burst, max(d, 0)/tp.limit.Interval) }
	if most := min(burst, refilled(after.to+w.best-before.at)+1); got > most {
		t.Errorf("%s: %d units of %s were admitted, at most %d can have been refilled", tc.name, got, tp.name, most)
	}
	if least := refilled(after.from - before.to - int64(tc.lose+costly)); got < least {
		t.Errorf("%s: %d units of %s were admitted, at least %d have been refilled", tc.name, got, tp.name, least)
	}
	if most := min(burst, refilled(after.at-before.at)+1); got > most { // P1, in cluster time
		t.Errorf("%s: %d units of %s in %s of cluster time", tc.name, got, tp.name, time.Duration(after.at-before.at))
	}
}
