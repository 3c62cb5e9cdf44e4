package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"limitd/algo"
	"limitd/cluster"
	"limitd/fsm"
)

// KeyError is one thing wrong with a configuration: the key, and where it was
// written if it was written.
type KeyError struct {
	Key   string // as in the file: raft.lease, node[1].resp; the index counts from 0
	Where string // file:line, file, or empty
	Msg   string // what is wrong and what to do
}

func (e *KeyError) Error() string {
	if e.Where == "" {
		return e.Key + ": " + e.Msg
	}
	return e.Where + ": " + e.Key + ": " + e.Msg
}

// KeyErrors is all that is wrong with a configuration, in the order of its keys.
type KeyErrors []*KeyError

func (es KeyErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (es *KeyErrors) add(key, format string, args ...any) {
	*es = append(*es, &KeyError{Key: key, Msg: fmt.Sprintf(format, args...)})
}

// Validate returns a KeyErrors with everything that is wrong, or nil.
func (c *Config) Validate() error {
	var es KeyErrors
	if strings.TrimSpace(c.Cluster.Name) == "" {
		es.add("cluster.name", "must not be empty")
	}
	c.validateUsers(&es)
	c.validateNodes(&es)
	c.validateRaft(&es)
	c.validateLimits(&es)
	c.validateRESP(&es)
	if len(es) == 0 {
		return nil
	}
	return es
}

func (c *Config) validateNodes(es *KeyErrors) {
	if len(c.Nodes) == 0 {
		es.add("node", "no [[node]] is listed: each node needs id, resp and peer")
	}
	ids, addresses := map[string]int{}, map[string]string{}
	for i, n := range c.Nodes {
		key := func(name string) string { return fmt.Sprintf("node[%d].%s", i, name) }
		if err := checkNodeID(n.ID); err != nil {
			es.add(key("id"), "%v", err)
		} else if first, ok := ids[n.ID]; ok {
			es.add(key("id"), "%q is the id of node[%d] too", n.ID, first)
		} else {
			ids[n.ID] = i
		}
		if n.Data == "" {
			es.add(key("data"), "must not be empty")
		}
		for _, a := range []struct{ name, address string }{{"resp", n.RESP}, {"peer", n.Peer}} {
			loopback, err := checkAddress(a.address)
			switch used, twice := addresses[a.address]; {
			case err != nil:
				es.add(key(a.name), "%v", err)
			case twice:
				es.add(key(a.name), "%s is %s too", a.address, used)
			case !loopback && a.name == "resp" && !c.guarded():
				es.add(key(a.name), "%s is reachable from other machines, and clients need no password: add the line  requirepass = %q  at the top of the file, above all tables, or use a loopback address such as 127.0.0.1", a.address, newPassword())
			case !loopback && a.name == "peer" && !c.Peers.Insecure:
				es.add(key(a.name), "%s is reachable from other machines, and peers are not authenticated: use a loopback address, or set peers.insecure = true if the network is yours alone", a.address)
			}
			addresses[a.address] = key(a.name)
		}
	}
}

func (c *Config) validateRaft(es *KeyErrors) {
	r := c.Raft
	atLeast(es, "raft.heartbeat", r.Heartbeat, 50*time.Millisecond)
	atLeast(es, "raft.election", r.Election, 50*time.Millisecond)
	atLeast(es, "raft.lease", r.Lease, 50*time.Millisecond)
	if r.Election < r.Heartbeat {
		es.add("raft.election", "%v is below raft.heartbeat (%v)", r.Election, r.Heartbeat)
	}
	if r.Lease > r.Heartbeat {
		es.add("raft.lease", "%v is above raft.heartbeat (%v)", r.Lease, r.Heartbeat)
	}
	if r.LogStore != "" && !slices.Contains(cluster.LogStores, r.LogStore) {
		es.add("raft.log_store", `%q is unknown: use "bolt" or "wal"`, r.LogStore)
	}
	atLeast(es, "raft.disk_stall", r.DiskStall, time.Second)
}

func (c *Config) validateLimits(es *KeyErrors) {
	l := c.Limits
	atLeast(es, "limits.request_timeout", l.RequestTimeout, 10*time.Millisecond)
	atLeast(es, "limits.leader_wait", l.LeaderWait, time.Millisecond)
	if l.LeaderWait > l.RequestTimeout {
		es.add("limits.leader_wait", "%v is above limits.request_timeout (%v)", l.LeaderWait, l.RequestTimeout)
	}
	within(es, "limits.max_queue_requests", l.MaxQueueRequests, 1, 1<<24)
	sizeWithin(es, "limits.max_queue_bytes", l.MaxQueueBytes, 1<<20, 64<<30)
	if l.MaxMemory.Percent == 0 {
		sizeWithin(es, "limits.max_memory", Size(l.MaxMemory.Bytes), 16<<20, 1<<50)
	}
	sizeWithin(es, "limits.min_free_disk", l.MinFreeDisk, 1<<20, 1<<50)
	sizeWithin(es, "limits.max_key", l.MaxKey, 1, fsm.MaxKey)
	atLeast(es, "limits.id_ttl", l.IDTTL, time.Second)
	within(es, "limits.max_ids", l.MaxIDs, 1, 1<<30)
	within(es, "limits.max_log_entries", l.MaxLogEntries, 1, fsm.MaxState/algo.LogEntry)
}

func (c *Config) validateRESP(es *KeyErrors) {
	r := c.RESP
	// What a node takes from a client it must be able to hand on to the leader.
	within(es, "resp.max_args", r.MaxArgs, 8, 1<<16)
	sizeWithin(es, "resp.max_arg_bytes", r.MaxArgBytes, 64, 3<<20)
	sizeWithin(es, "resp.max_request_bytes", r.MaxRequestBytes, 1<<10, 3<<20)
	within(es, "resp.max_pipeline", r.MaxPipeline, 1, 1<<20)
	within(es, "resp.max_clients", r.MaxClients, 1, 1<<20)
	within(es, "resp.max_clients_per_ip", int(r.MaxClientsPerIP), 0, 1<<20)
	if r.IdleTimeout != 0 {
		atLeast(es, "resp.idle_timeout", r.IdleTimeout, time.Second)
	}
	atLeast(es, "resp.write_timeout", r.WriteTimeout, 10*time.Millisecond)
	sizeWithin(es, "resp.output_buffer", r.OutputBuffer, 64<<10, 1<<30)
	sizeWithin(es, "resp.max_buffers", r.MaxBuffers, 1<<20, 1<<40)
	if r.MaxBuffers < 2*r.MaxRequestBytes || r.MaxBuffers < 2*r.OutputBuffer {
		es.add("resp.max_buffers", "%v is below twice resp.max_request_bytes (%v) or twice resp.output_buffer (%v): one client could take it all", r.MaxBuffers, r.MaxRequestBytes, r.OutputBuffer)
	}
	if c.Limits.MaxKey > r.MaxArgBytes {
		es.add("limits.max_key", "%v is above resp.max_arg_bytes (%v): such a key could never arrive", c.Limits.MaxKey, r.MaxArgBytes)
	}
	if r.MaxArgBytes > r.MaxRequestBytes {
		es.add("resp.max_arg_bytes", "%v is above resp.max_request_bytes (%v)", r.MaxArgBytes, r.MaxRequestBytes)
	}
}

// atLeast also catches a bare number, which TOML gives as nanoseconds.
func atLeast(es *KeyErrors, key string, d Duration, least time.Duration) {
	if time.Duration(d) < least {
		es.add(key, `%v is below %v (durations are written with a unit: "200ms", "5s")`, d, least)
	}
}

func within(es *KeyErrors, key string, v, least, most int) {
	if v < least || v > most {
		es.add(key, "%d is not within %d to %d", v, least, most)
	}
}

func sizeWithin(es *KeyErrors, key string, v, least, most Size) {
	if v < least || v > most {
		es.add(key, "%v is not within %v to %v", v, least, most)
	}
}

// checkNodeID keeps ids printable, short, and usable as a part of a file name.
func checkNodeID(id string) error {
	ok := id != "" && len(id) <= 32
	for i, c := range []byte(id) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		ok = ok && (alnum || i > 0 && (c == '-' || c == '_'))
	}
	if !ok {
		return fmt.Errorf("%q is no node id: use 1 to 32 letters, digits, '-' and '_', beginning with a letter or digit", id)
	}
	return nil
}

// checkAddress says whether a host:port can be reached from this machine alone.
// A name other than localhost may lead anywhere, so it does not count as loopback.
func checkAddress(address string) (loopback bool, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("%q is no host:port", address)
	}
	if p, err := strconv.Atoi(port); err != nil || p < 1 || p > 65535 {
		return false, fmt.Errorf("%q has no port from 1 to 65535", address)
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}
