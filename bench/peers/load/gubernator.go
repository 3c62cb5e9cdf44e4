package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gubernator-io/gubernator/v2"
)

// guber asks for one limit of one key in each call.
type guber struct {
	*conns
	clients []gubernator.V1Client
	limit   limit
}

func dialGubernator(_ context.Context, addrs []string, n int, l limit) (peer, error) {
	c, err := dialAll(addrs, n)
	if err != nil {
		return nil, err
	}
	g := &guber{conns: c, limit: l}
	for _, cc := range c.all {
		g.clients = append(g.clients, gubernator.NewV1Client(cc))
	}
	return g, nil
}

func (g *guber) decide(ctx context.Context, conn int, key string) (bool, error) {
	r, err := g.clients[conn].GetRateLimits(ctx, &gubernator.GetRateLimitsReq{Requests: []*gubernator.RateLimitReq{{
		Name: g.limit.name, UniqueKey: key, Hits: 1, Limit: g.limit.calls, Duration: g.limit.period.Milliseconds(),
	}}})
	switch {
	case err != nil:
		return false, err
	case len(r.Responses) != 1:
		return false, fmt.Errorf("%d answers to one call", len(r.Responses))
	case r.Responses[0].Error != "":
		return false, errors.New(r.Responses[0].Error)
	}
	return r.Responses[0].Status == gubernator.Status_UNDER_LIMIT, nil
}
