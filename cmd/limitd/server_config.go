package main

import (
	"log/slog"
	"time"

	"limitd/cluster"
	"limitd/limiter"
	"limitd/resp"
)

// What each room is told of the configuration.

func (s *server) clusterConfig(cfg Config, self NodeConfig, join joining) cluster.Config {
	members := make([]cluster.Member, len(cfg.Nodes))
	for i, n := range cfg.Nodes {
		members[i] = cluster.Member{ID: n.ID, Resp: n.RESP, Peer: n.Peer}
	}
	c := cluster.Config{
		ID:                self.ID,
		Members:           members,
		DataDir:           self.Data,
		Insecure:          cfg.Peers.Insecure,
		Heartbeat:         time.Duration(cfg.Raft.Heartbeat),
		Election:          time.Duration(cfg.Raft.Election),
		Lease:             time.Duration(cfg.Raft.Lease),
		DiskStall:         time.Duration(cfg.Raft.DiskStall),
		LogStore:          cfg.Raft.LogStore,
		SnapshotInterval:  30 * time.Second,
		SnapshotThreshold: 4096,
		TrailingBytes:     256 << 20,
		MinFreeDisk:       int64(cfg.Limits.MinFreeDisk),
		Version:           version,
		Logger:            s.log,
		Removed:           func(err error) { s.removed <- removal{err, s.leaving.Load() > 0} },
		Fatal:             s.fatal,
	}
	if join.member != "" {
		member := client{addr: join.member, login: environmentLogin()}
		if member.password == "" {
			member.login = cfg.ownLogin()
		}
		j := &joiner{member: member, peer: self.Peer, log: s.log, remind: joinRemind}
		c.Join, c.NonVoter = j.ask, join.nonVoter
	}
	return c
}

func (s *server) limiterConfig(l LimitsConfig, maxMemory int64) limiter.Config {
	return limiter.Config{
		Node:           s.node.Status().ID,
		RequestTimeout: time.Duration(l.RequestTimeout),
		LeaderWait:     time.Duration(l.LeaderWait),
		MaxQueue:       l.MaxQueueRequests,
		MaxQueueBytes:  int64(l.MaxQueueBytes),
		MaxMemory:      maxMemory,
		MaxLogEntries:  l.MaxLogEntries,
		MaxIDs:         l.MaxIDs,
		IDTTL:          time.Duration(l.IDTTL),
		DiskLow:        s.node.DiskLow,
		Loading:        s.loading.Load,
	}
}

func respConfig(cfg Config, maxMemory int64, log *slog.Logger) resp.Config {
	r := cfg.RESP
	return resp.Config{
		MaxArgs:         r.MaxArgs,
		MaxArgBytes:     int(r.MaxArgBytes),
		MaxRequestBytes: int(r.MaxRequestBytes),
		MaxPipeline:     r.MaxPipeline,
		MaxClients:      r.MaxClients,
		MaxClientsPerIP: int(r.MaxClientsPerIP),
		IdleTimeout:     time.Duration(r.IdleTimeout),
		WriteTimeout:    time.Duration(r.WriteTimeout),
		OutputBuffer:    int(r.OutputBuffer),
		MaxBuffers:      int64(r.MaxBuffers),
		MaxKey:          int(cfg.Limits.MaxKey),
		MaxMemory:       maxMemory,
		Users:           cfg.respUsers(),
		Version:         version,
		Logger:          log,
	}
}
