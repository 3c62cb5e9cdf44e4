package nemesis

import (
	"context"
	"fmt"
	"time"

	"limitd/jepsen/lab"
)

var links = []Nemesis{
	{"slow-links", "a healthy cluster that takes a slow network for a dead one", Links, []lab.Ability{lab.Delay}, func(ctx context.Context, e *Env) error {
		d := []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond}[e.Rand.IntN(3)]
		return e.shape(ctx, e.everybody(), lab.Quality{Delay: d, Jitter: d / 2}, fmt.Sprintf("%v, and half of it more or less", d))
	}},
	{"lossy-links", "a frame that is taken for whole", Links, []lab.Ability{lab.Delay}, func(ctx context.Context, e *Env) error {
		loss := []float64{0.05, 0.3}[e.Rand.IntN(2)]
		return e.shape(ctx, e.everybody(), lab.Quality{Loss: loss}, fmt.Sprintf("%v of all packets are lost", loss))
	}},
	{"narrow-links", "heartbeats that wait behind entries", Links, []lab.Ability{lab.Delay}, func(ctx context.Context, e *Env) error {
		return e.shape(ctx, e.everybody(), lab.Quality{BytesPerSec: 125_000}, "1 Mbit/s")
	}},
	{"slow-node", "one slow node that makes all of them slow", Links, []lab.Ability{lab.Delay}, func(ctx context.Context, e *Env) error {
		return e.shape(ctx, []string{e.victim()}, lab.Quality{Delay: 100 * time.Millisecond, Jitter: 80 * time.Millisecond}, "all that it sends comes 20 to 180 ms late")
	}},
}

// shape gives all that some nodes send to others a quality, for 1 to 8 s.
func (e *Env) shape(ctx context.Context, from []string, q lab.Quality, detail string) error {
	return e.during(from, detail, func() error {
		all := map[lab.Cut]lab.Quality{}
		for _, id := range from {
			for _, other := range e.others(id) {
				all[lab.Cut{From: id, To: other}] = q
			}
		}
		if err := e.Lab.Network().Shape(all); err != nil {
			return err
		}
		e.wait(ctx, time.Second, 8*time.Second)
		return e.Lab.Network().Shape(nil)
	})
}
