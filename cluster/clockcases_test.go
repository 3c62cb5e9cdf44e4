package cluster

import "time"

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
		{name: "all rebooted, and a voter gets an entry from before", happen: func(w *world) {
			l, f, g := w.roles()
			w.sever(g)
			w.settle(g)
			w.halt(true, w.nodes...)
			w.heal()
			w.pass(away)
			w.reboot(w.nodes...)
			w.restart(l, g)
			w.lead(l)
			w.restart(f)
		}},
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
