package cluster

import (
	"testing"
	"time"
)

func TestPauseCountsAsOneStep(t *testing.T) {
	clock := &fixedClock{boot: 1000}
	const heartbeat = time.Second
	a := newAwake(clock, heartbeat)
	for range 10 {
		clock.boot += int64(stepEvery)
		a.step()
	}
	if got := time.Duration(a.ran.Load()); got != 10*stepEvery {
		t.Errorf("it ran for %s, want %s", got, 10*stepEvery)
	}
	if a.paused(clock.boot, int64(heartbeat)) {
		t.Error("nothing was paused")
	}
	clock.boot += int64(time.Hour)
	if !a.paused(clock.boot, int64(heartbeat)) {
		t.Error("a pause is not noticed before the next step")
	}
	a.step()
	if got := time.Duration(a.ran.Load()); got != 10*stepEvery+heartbeat/2 {
		t.Errorf("with a pause of an hour it ran for %s", got)
	}
	clock.boot += int64(heartbeat) - 1
	a.stepped.Store(clock.boot)
	if !a.paused(clock.boot, int64(heartbeat)) {
		t.Error("just under a heartbeat timeout after the pause it is over")
	}
	clock.boot++
	if a.paused(clock.boot, int64(heartbeat)) {
		t.Error("a heartbeat timeout after the pause it is not over")
	}
}

func TestWhatChangesDoesNotLast(t *testing.T) {
	var l lasting[string]
	for _, tc := range []struct {
		is   string
		ran  int64
		want time.Duration
	}{{"a", 50, 0}, {"a", 80, 30}, {"b", 90, 0}, {"b", 95, 5}, {"a", 99, 0}} {
		if got := l.look(tc.is, tc.ran); got != tc.want {
			t.Errorf("%s at %d has lasted %d, want %d", tc.is, tc.ran, got, tc.want)
		}
	}
}

func TestTimeoutEndsByTimeInWhichTheProcessRan(t *testing.T) {
	clock := &movedClock{}
	a := newAwake(clock, testHeartbeat)
	ctx, cancel := a.timeout(3 * testHeartbeat / 4)
	defer cancel()
	clock.boot.Add(int64(time.Hour))
	a.step()
	time.Sleep(3 * a.every)
	if ctx.Err() != nil {
		t.Error("a pause of an hour ended a timeout of less than a heartbeat timeout")
	}
	clock.boot.Add(int64(time.Hour))
	a.step()
	eventually(t, "the timeout to end", func() bool { return ctx.Err() != nil })
}
