package main

import (
	"context"
	"fmt"

	"limitd/bench/load"
)

// series is a line of a plot.
type series struct {
	name   string
	points []point
}

// point is a rate of arrivals per second and the p50 and p99 of the latency in ms.
type point struct{ rate, p50, p99 float64 }

// shares of the highest rate at which latencies are measured.
var shares = []float64{0.05, 0.1, 0.25, 0.5, 0.7, 0.8, 0.9}

// sweep measures latencies at rising rates of arrivals, of single calls, for limitd and
// the script; the two lines are a plot of the results.
func sweep(of rates) func(context.Context, *env) (*result, error) {
	return func(ctx context.Context, e *env) (*result, error) {
		e.filled = false
		if err := of.prepare(ctx, e); err != nil {
			return nil, err
		}
		leader, err := e.cluster.Leader(ctx)
		if err != nil {
			return nil, err
		}
		res := &result{name: "latency of single calls at rising rates, " + of.name, unit: "calls/s", free: true, digits: -1}
		for _, side := range []struct {
			name string
			addr string
			call command
		}{
			{"limitd", leader.Addr, command{before: []string{"CL.THROTTLE"}, after: words(of.args), keys: of.keys}},
			{"the script, nothing on disk", e.baseline.addr, command{before: e.baseline.call(), after: words(of.args), keys: of.keys}},
		} {
			if _, err := e.cluster.AwaitReady(ctx); err != nil {
				return nil, err
			}
			plan := e.plan(load.Plan{Addrs: []string{side.addr}, Conns: 200, Next: side.call.next()})
			plan.Time /= 2
			highest, err := drive(ctx, plan, of.admitted)
			if err != nil {
				return nil, err
			}
			s := series{name: side.name}
			for _, share := range shares {
				plan.Rate = highest.Rate() * share
				r, err := drive(ctx, plan, of.admitted)
				if err != nil {
					return nil, err
				}
				s.points = append(s.points, point{plan.Rate, float64(r.Quantile(0.5)) / 1e6, float64(r.Quantile(0.99)) / 1e6})
			}
			res.add(highest.Rate())
			res.note("%s: at most %.0f calls/s, one at a time on 200 connections", s.name, highest.Rate())
			for _, p := range s.points {
				res.note("  %7.0f/s: p50 %.2f ms, p99 %.2f ms", p.rate, p.p50, p.p99)
			}
			res.series = append(res.series, s)
		}
		res.plot = fmt.Sprintf("latency-%s.svg", map[bool]string{true: "admitted", false: "denied"}[of.admitted])
		return res, nil
	}
}
