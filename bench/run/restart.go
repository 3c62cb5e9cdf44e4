package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"limitd/proc"
	"limitd/proc/nodes"
)

const (
	restartMost     = 5.0 // s
	restartPatience = 2 * time.Minute
)

// restart fills the cluster with live keys, ends one follower, with SIGTERM and
// then with SIGKILL, and takes the time from its start to its first answer.
// Before and after, its state must be that of the leader, which keeps running.
func restart(ctx context.Context, e *env) (*result, error) {
	leader, err := e.cluster.AwaitReady(ctx)
	if err != nil {
		return nil, err
	}
	if err := leader.Client.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	began := time.Now()
	err = seed(ctx, leader.Client, e.keys, func(key string) []any {
		return []any{"CL.THROTTLE", key, 0, 1, 86400, 1}
	})
	if err != nil {
		return nil, err
	}
	res := &result{name: fmt.Sprintf("restart with %d live keys: first answer (SIGTERM, then kill -9)", e.keys), unit: "s", bound: restartMost, worst: true}
	res.note("%d keys charged in %.1f s", e.keys, time.Since(began).Seconds())
	n := e.cluster.Other(leader)
	for _, end := range []struct {
		signal string
		end    func() error
	}{
		{"SIGTERM", n.Stop},
		{"SIGKILL", n.Kill},
	} {
		if _, err := e.cluster.AwaitReady(ctx); err != nil {
			return nil, err
		}
		sum, err := sameState(ctx, e.cluster.Program, leader, n)
		if err != nil {
			return nil, fmt.Errorf("before %s: %w", end.signal, err)
		}
		res.note("before %s: %s", end.signal, sum)
		if err := end.end(); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := e.cluster.StartNode(n); err != nil {
			return nil, err
		}
		err = proc.Await(ctx, fmt.Sprintf("%s does not answer after %s and a start", n.ID, end.signal), restartPatience,
			func(ctx context.Context) error { return denies(ctx, n, keyName(e.keys-1)) }, n.Proc)
		if err != nil {
			return nil, err
		}
		res.add(time.Since(began).Seconds())
		if _, err := e.cluster.AwaitReady(ctx); err != nil {
			return nil, err
		}
		if sum, err = sameState(ctx, e.cluster.Program, leader, n); err != nil {
			return nil, fmt.Errorf("after %s: %w", end.signal, err)
		}
		res.note("after %s:  %s", end.signal, sum)
	}
	return res, nil
}

// denies wants the denial of a key that is used up: the answer of a node that
// has its state.
func denies(ctx context.Context, n *nodes.Node, key string) error {
	got, err := n.Client.Do(ctx, "CL.THROTTLE", key, 0, 1, 86400, 1).Int64Slice()
	if err != nil {
		return err
	}
	if len(got) != 5 || got[0] != 1 {
		return proc.Permanent(fmt.Errorf("%s has forgotten %s: %v", n.ID, key, got))
	}
	return nil
}

// sameState compares two nodes: their chain hashes at the newest index that
// both name, and the bytes of the state streams that both save at one batch.
func sameState(ctx context.Context, program string, a, b *nodes.Node) (string, error) {
	var text string
	err := proc.Await(ctx, fmt.Sprintf("compare the states of %s and %s", a.ID, b.ID), readyPatience, func(ctx context.Context) error {
		chain, err := sameChain(ctx, a, b)
		if err != nil {
			return err
		}
		sa, err := save(ctx, program, a)
		if err != nil {
			return err
		}
		sb, err := save(ctx, program, b)
		if err != nil {
			return err
		}
		if sa.Last != sb.Last {
			return fmt.Errorf("%s saved at batch %d, %s at %d", a.ID, sa.Last, b.ID, sb.Last)
		}
		if sa != sb {
			return proc.Permanent(fmt.Errorf("streams differ: %s has %+v, %s has %+v", a.ID, sa, b.ID, sb))
		}
		text = fmt.Sprintf("%s; %d records at batch %d, sha256 %.16s", chain, sa.Records, sa.Last, sa.Sum)
		return nil
	}, a.Proc, b.Proc)
	return text, err
}

func sameChain(ctx context.Context, a, b *nodes.Node) (string, error) {
	ha, err := hashes(ctx, a)
	if err != nil {
		return "", err
	}
	hb, err := hashes(ctx, b)
	if err != nil {
		return "", err
	}
	newest := int64(-1)
	for index := range ha {
		if _, both := hb[index]; both {
			newest = max(newest, index)
		}
	}
	if newest < 0 {
		return "", fmt.Errorf("RL.HASH of %s and %s have no index in common", a.ID, b.ID)
	}
	if ha[newest] != hb[newest] {
		return "", proc.Permanent(fmt.Errorf("chain hash at %d: %s on %s, %s on %s", newest, ha[newest], a.ID, hb[newest], b.ID))
	}
	return fmt.Sprintf("chain %s at index %d", ha[newest], newest), nil
}

// hashes is RL.HASH, an array of pairs: chain hashes by index.
func hashes(ctx context.Context, n *nodes.Node) (map[int64]string, error) {
	points, err := n.Client.Do(ctx, "RL.HASH").Slice()
	if err != nil {
		return nil, fmt.Errorf("%s: RL.HASH: %w", n.ID, err)
	}
	out := make(map[int64]string)
	for _, p := range points {
		pair, ok := p.([]any)
		if !ok || len(pair) != 2 {
			return nil, proc.Permanent(fmt.Errorf("%s: RL.HASH answers %v, not pairs", n.ID, points))
		}
		index, ok := pair[0].(int64)
		if !ok {
			return nil, proc.Permanent(fmt.Errorf("%s: RL.HASH answers index %v", n.ID, pair[0]))
		}
		out[index] = fmt.Sprint(pair[1])
	}
	return out, nil
}

// saved is what `limitd snapshot inspect` says of a saved state.
type saved struct {
	Last    uint64 `json:"last_batch"`
	Records int    `json:"records"`
	Sum     string `json:"sha256"`
}

func save(ctx context.Context, program string, n *nodes.Node) (saved, error) {
	var s saved
	path, err := n.Client.Do(ctx, "RL.SNAPSHOT", "SAVE").Text()
	if err != nil {
		return s, fmt.Errorf("%s: RL.SNAPSHOT SAVE: %w", n.ID, err)
	}
	out, err := exec.CommandContext(ctx, program, "snapshot", "inspect", "--json", path).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return s, fmt.Errorf("snapshot inspect %s: %w", path, err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("snapshot inspect --json %s: %w", path, err)
	}
	if s.Sum == "" {
		return s, fmt.Errorf("snapshot inspect --json %s shows no sha256: %s", path, out)
	}
	return s, nil
}
