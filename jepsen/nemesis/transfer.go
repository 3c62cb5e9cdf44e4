package nemesis

import (
	"context"
	"sync"
	"time"

	"limitd/jepsen/lab"
)

var transfers = []Nemesis{
	{"transfer", "two leaders, of which one handed over", Members, nil, func(ctx context.Context, e *Env) error {
		for range 1 + e.Rand.IntN(4) {
			to := e.some(2)
			e.during(to[:1], "leadership is handed over", func() error {
				e.Ask.AskFor(changeTime, to[1], "RL.CLUSTER", "TRANSFER", to[0]) // a refusal is an answer
				return nil
			})
			if !e.wait(ctx, 0, time.Second) {
				break
			}
		}
		return nil
	}},
	{"transfer-storm", "a leader that hands over to a node that lags, is cut off meanwhile, and refuses for ever", Links | Members, []lab.Ability{lab.Netns}, func(ctx context.Context, e *Env) error {
		leader := e.leader()
		lagging := e.others(leader)[0]
		net := e.Lab.Network()
		return e.during([]string{leader, lagging}, "transfers to a node that is cut off, then the leader is", func() error {
			var all sync.WaitGroup
			defer all.Wait()
			for range 1 + e.Rand.IntN(3) {
				if err := net.Cut(split([]string{lagging}, e.others(lagging), lab.PeerPort)); err != nil {
					return err
				}
				for range 4 {
					all.Go(func() { e.Ask.AskFor(changeTime, leader, "RL.CLUSTER", "TRANSFER", lagging) })
				}
				e.wait(ctx, 50*time.Millisecond, 800*time.Millisecond)
				if err := net.Cut(split([]string{leader}, e.others(leader), lab.PeerPort)); err != nil {
					return err
				}
				more := e.wait(ctx, 200*time.Millisecond, 2*time.Second)
				if err := net.Cut(nil); err != nil {
					return err
				}
				if !more || !e.wait(ctx, 200*time.Millisecond, 2*time.Second) {
					break
				}
			}
			return nil
		})
	}},
}
