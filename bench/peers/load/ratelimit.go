package main

import (
	"context"
	"fmt"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// envoy asks envoyproxy/ratelimit for one descriptor in each call: the name of the limit
// with the key as its value.
type envoy struct {
	*conns
	clients []ratelimit.RateLimitServiceClient
	limit   limit
}

func dialRatelimit(_ context.Context, addrs []string, n int, l limit) (peer, error) {
	c, err := dialAll(addrs, n)
	if err != nil {
		return nil, err
	}
	e := &envoy{conns: c, limit: l}
	for _, cc := range c.all {
		e.clients = append(e.clients, ratelimit.NewRateLimitServiceClient(cc))
	}
	return e, nil
}

func (e *envoy) decide(ctx context.Context, conn int, key string) (bool, error) {
	r, err := e.clients[conn].ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: "bench", Descriptors: []*descriptor.RateLimitDescriptor{{
		Entries: []*descriptor.RateLimitDescriptor_Entry{{Key: e.limit.name, Value: key}},
	}}})
	if err == nil {
		err = limited(r)
	}
	return err == nil && r.OverallCode == ratelimit.RateLimitResponse_OK, err
}

// limited wants an answer about a limit: of a descriptor that is not in its
// configuration, ratelimit says OK without one.
func limited(r *ratelimit.RateLimitResponse) error {
	if len(r.Statuses) != 1 || r.Statuses[0].CurrentLimit == nil {
		return fmt.Errorf("it knows no such limit: %v", r.Statuses)
	}
	return nil
}
