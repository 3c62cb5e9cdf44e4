package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"limitd/proc"
)

// startGubernator starts nodes of gubernator. Its cache holds all the keys of the loads,
// which its default of 50,000 would not, and its nodes wait for each other longer than the
// default 500 ms: with three of them on few processors some calls would fail.
func startGubernator(nodes int) starter {
	return func(ctx context.Context, e *env) (p *peer, err error) {
		if nodes > 1 {
			if err := etcdInstalled(); err != nil {
				return nil, err
			}
		}
		program, err := e.tool(ctx, "gubernator", "peers/gubernator", "github.com/gubernator-io/gubernator/v2/cmd/gubernator")
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(e.dir, "gubernator-")
		if err != nil {
			return nil, err
		}
		addrs, err := proc.FreeAddrs(2*nodes + 2)
		if err != nil {
			return nil, err
		}
		grpc, http, other := addrs[:nodes], addrs[nodes:2*nodes], addrs[2*nodes:]
		p = &peer{kind: "gubernator", about: fmt.Sprintf("gubernator %s, nodes: %d, which keep all in memory; token bucket", versionOf(program), nodes), addrs: grpc, clients: grpcClients}
		defer func() {
			if err != nil {
				err = errors.Join(err, p.stop())
			}
		}()
		discovery := []string{"GUBER_PEER_DISCOVERY_TYPE=member-list", "GUBER_MEMBERLIST_ADDRESS=" + other[0],
			"GUBER_MEMBERLIST_BIND_ADDRESS=" + other[0], "GUBER_MEMBERLIST_KNOWN_NODES=" + other[0]}
		if nodes > 1 {
			// By gossip they would not find each other: it knows nodes by the name of their machine.
			registry, err := startEtcdNode(dir, 0, other[0], other[1], []string{member(0, other[1])})
			if err != nil {
				return nil, err
			}
			p.procs = append(p.procs, registry)
			if err := awaitEtcd(ctx, other[:1], p.procs); err != nil {
				return nil, err
			}
			discovery = []string{"GUBER_PEER_DISCOVERY_TYPE=etcd", "GUBER_ETCD_ENDPOINTS=" + other[0]}
		}
		for i := range nodes {
			name := fmt.Sprintf("gubernator-%d", i+1)
			node, err := proc.Start(name, filepath.Join(dir, name+".log"), append([]string{
				"GUBER_GRPC_ADDRESS=" + grpc[i], "GUBER_ADVERTISE_ADDRESS=" + grpc[i], "GUBER_HTTP_ADDRESS=" + http[i],
				"GUBER_CACHE_SIZE=500000", "GUBER_LOG_LEVEL=error", "GUBER_BATCH_TIMEOUT=10s", "OTEL_TRACES_EXPORTER=none", "OTEL_TRACES_SAMPLER=always_off",
			}, discovery...), program)
			if err != nil {
				return nil, err
			}
			p.procs = append([]*proc.Process{node}, p.procs...) // it ends before what it registers with
		}
		return p, proc.Await(ctx, "gubernator is not ready", readyPatience, func(ctx context.Context) error {
			for _, addr := range http {
				if err := gubernatorReady(ctx, addr, nodes); err != nil {
					return err
				}
			}
			return nil
		}, p.procs...)
	}
}

// gubernatorReady wants a node to know of all nodes.
func gubernatorReady(ctx context.Context, addr string, nodes int) error {
	text, err := httpGet(ctx, "http://"+addr+"/v1/HealthCheck")
	if err != nil {
		return err
	}
	var health struct {
		Status string
		Peers  int `json:"peer_count"`
	}
	if err := json.Unmarshal(text, &health); err != nil {
		return fmt.Errorf("health of %s: %q: %w", addr, text, err)
	}
	if health.Status != "healthy" || health.Peers != nodes {
		return fmt.Errorf("health of %s: %s", addr, text)
	}
	return nil
}
