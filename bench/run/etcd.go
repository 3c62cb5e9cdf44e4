package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"limitd/proc"
)

// etcdPuts compares replicated admissions with puts of three etcd nodes that sync as they
// do by default: both have each call on the disks of a majority before they answer.
var etcdPuts = comparison{
	name: "replicated admissions / etcd puts, three nodes each, 500 clients", bound: 4, stretch: 8, start: startEtcd,
}

func etcdInstalled() error { return installed("etcd", "apt-get install etcd-server") }

func startEtcd(ctx context.Context, e *env) (p *peer, err error) {
	if err := etcdInstalled(); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "etcd", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("etcd --version: %w", err)
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(string(out), "etcd Version: "), "\n")
	dir, err := os.MkdirTemp(e.dir, "etcd-")
	if err != nil {
		return nil, err
	}
	addrs, err := proc.FreeAddrs(6)
	if err != nil {
		return nil, err
	}
	p = &peer{kind: "etcd", about: "etcd " + version + ", three nodes, default configuration; asked at the leader", addrs: addrs[:3],
		clients: []asking{{peerClients, 1}, {peerClients, 10}, {peerClients, 50}, {peerClients, peerClients}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	var members []string
	for i := range 3 {
		members = append(members, member(i, addrs[3+i]))
	}
	for i := range 3 {
		node, err := startEtcdNode(dir, i, addrs[i], addrs[3+i], members)
		if err != nil {
			return nil, err
		}
		p.procs = append(p.procs, node)
	}
	return p, awaitEtcd(ctx, p.addrs, p.procs)
}

func etcdName(i int) string { return fmt.Sprintf("etcd-%d", i+1) }

// member is a node as etcd is told of it.
func member(i int, peerAddr string) string { return etcdName(i) + "=http://" + peerAddr }

// startEtcdNode starts one node of some members with what etcd does by default.
func startEtcdNode(dir string, i int, addr, peerAddr string, members []string) (*proc.Process, error) {
	name, client, peers := etcdName(i), "http://"+addr, "http://"+peerAddr
	return proc.Start(name, filepath.Join(dir, name+".log"), nil, "etcd", "--name", name, "--data-dir", filepath.Join(dir, name),
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new", "--logger", "zap")
}

func awaitEtcd(ctx context.Context, addrs []string, procs []*proc.Process) error {
	return proc.Await(ctx, "etcd is not ready", readyPatience, func(ctx context.Context) error {
		for _, addr := range addrs {
			if _, err := httpGet(ctx, "http://"+addr+"/health"); err != nil {
				return err
			}
		}
		return nil
	}, procs...)
}
