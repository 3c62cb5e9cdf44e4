package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcd stores a value of eight bytes, as long as the state of a limit, for each call.
type etcd struct {
	clients []*clientv3.Client
	puts    atomic.Int64
	before  int64 // the store's revision
}

const value = "01234567"

// dialEtcd connects to the leader alone: a put at a follower is one more hop.
func dialEtcd(ctx context.Context, addrs []string, conns int, _ limit) (peer, error) {
	leader, err := leaderOf(ctx, addrs)
	if err != nil {
		return nil, err
	}
	e := &etcd{}
	for range conns {
		c, err := clientOf(ctx, leader)
		if err != nil {
			return nil, err
		}
		e.clients = append(e.clients, c)
	}
	e.before, err = e.revision(ctx)
	return e, err
}

func clientOf(ctx context.Context, addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{addr}, Context: ctx, Logger: zap.NewNop()})
}

func leaderOf(ctx context.Context, addrs []string) (string, error) {
	for _, addr := range addrs {
		c, err := clientOf(ctx, addr)
		if err != nil {
			return "", err
		}
		status, err := c.Status(ctx, addr)
		c.Close()
		if err != nil {
			return "", fmt.Errorf("status of %s: %w", addr, err)
		}
		if status.Leader == status.Header.MemberId {
			return addr, nil
		}
	}
	return "", errors.New("none of them leads")
}

func (e *etcd) decide(ctx context.Context, conn int, key string) (bool, error) {
	_, err := e.clients[conn].Put(ctx, key, value)
	if err == nil {
		e.puts.Add(1)
	}
	return true, err
}

func (e *etcd) revision(ctx context.Context) (int64, error) {
	r, err := e.clients[0].Get(ctx, "revision")
	if err != nil {
		return 0, err
	}
	return r.Header.Revision, nil
}

// close makes sure that the store has gone on by every put: each makes a revision.
func (e *etcd) close() error {
	after, err := e.revision(e.clients[0].Ctx())
	if n := e.puts.Load(); err == nil && after-e.before < n {
		err = fmt.Errorf("%d puts were answered, and the revision went from %d to %d", n, e.before, after)
	}
	errs := []error{err}
	for _, c := range e.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
