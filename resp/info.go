package resp

import (
	"crypto/sha1"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"limitd/limiter"
)

// section is a part of INFO.
type section struct {
	name  string // lower case
	title string
	write func(s *Server, w *infoWriter)
	extra bool // only when asked for
}

var sections = []section{
	{name: "server", title: "Server", write: infoServer},
	{name: "clients", title: "Clients", write: infoClients},
	{name: "memory", title: "Memory", write: infoMemory},
	{name: "persistence", title: "Persistence", write: infoPersistence},
	{name: "stats", title: "Stats", write: infoStats},
	{name: "replication", title: "Replication", write: infoReplication},
	{name: "cpu", title: "CPU", write: infoCPU},
	{name: "raft", title: "Raft", write: infoRaft},
	{name: "limiter", title: "Limiter", write: infoLimiter},
	{name: "commandstats", title: "Commandstats", write: infoCommandstats, extra: true},
	{name: "errorstats", title: "Errorstats", write: infoErrorstats},
	{name: "latencystats", title: "Latencystats", write: infoLatencystats, extra: true},
	{name: "cluster", title: "Cluster", write: infoCluster},
	{name: "keyspace", title: "Keyspace", write: infoKeyspace},
}

// infoWriter collects the lines of INFO.
type infoWriter struct{ strings.Builder }

func (w *infoWriter) field(name string, value any) { fmt.Fprintf(w, "%s:%v\r\n", name, value) }

// info is INFO [section …]: default, all, everything or names.
func info(c *client, dst []byte, args [][]byte) []byte {
	wanted := func(sec section) bool { return !sec.extra }
	if len(args) > 1 {
		wanted = func(sec section) bool {
			for _, a := range args[1:] {
				if is(a, sec.name) || is(a, "all") || is(a, "everything") || is(a, "default") && !sec.extra {
					return true
				}
			}
			return false
		}
	}
	var w infoWriter
	for _, sec := range sections {
		if wanted(sec) {
			if w.Len() > 0 {
				w.WriteString("\r\n")
			}
			w.WriteString("# " + sec.title + "\r\n")
			sec.write(c.srv, &w)
		}
	}
	return c.p().text(dst, w.String())
}

func infoServer(s *Server, w *infoWriter) {
	up := time.Since(s.started)
	w.field("redis_version", redisVersion)
	w.field("limitd_version", s.cfg.Version)
	w.field("redis_mode", "standalone")
	w.field("os", runtime.GOOS+" "+runtime.GOARCH)
	w.field("arch_bits", 32<<(^uint(0)>>63))
	w.field("go_version", runtime.Version())
	w.field("process_id", os.Getpid())
	w.field("run_id", s.runID)
	w.field("tcp_port", s.port())
	w.field("server_time_usec", time.Now().UnixMicro())
	w.field("uptime_in_seconds", int64(up.Seconds()))
	w.field("uptime_in_days", int64(up.Hours()/24))
}

func infoClients(s *Server, w *infoWriter) {
	w.field("connected_clients", s.connected())
	w.field("maxclients", s.cfg.MaxClients)
	w.field("blocked_clients", 0)
}

func infoMemory(s *Server, w *infoWriter) {
	m := readMemory()
	w.field("used_memory", m.used)
	w.field("used_memory_human", human(m.used))
	w.field("used_memory_rss", m.rss)
	w.field("used_memory_rss_human", human(m.rss))
	w.field("used_memory_peak", m.peak)
	w.field("used_memory_peak_human", human(m.peak))
	w.field("go_heap_allocs", m.allocs)
	w.field("mem_clients_normal", s.buffers.used.Load())
	w.field("maxmemory", s.cfg.MaxMemory)
	w.field("maxmemory_human", human(s.cfg.MaxMemory))
	w.field("maxmemory_policy", "noeviction")
	w.field("mem_fragmentation_ratio", fmt.Sprintf("%.2f", float64(m.rss)/float64(max(m.used, 1))))
}

// infoPersistence: each answer that changed state is on disk before it is given, in
// the log. What Redis says of its dumps is said of the snapshots.
func infoPersistence(s *Server, w *infoWriter) {
	st := s.admin.Status()
	w.field("loading", oneIf(st.Loading))
	w.field("aof_enabled", 1)
	w.field("aof_rewrite_in_progress", 0)
	w.field("aof_last_write_status", "ok")
	w.field("rdb_changes_since_last_save", st.Unsaved)
	w.field("rdb_bgsave_in_progress", oneIf(st.Saving))
	saved := st.Saved
	if saved.IsZero() {
		saved = s.started
	}
	w.field("rdb_last_save_time", saved.Unix())
	status := "ok"
	if st.SaveFailed {
		status = "err"
	}
	w.field("rdb_last_bgsave_status", status)
	if st.SaveTook == 0 {
		w.field("rdb_last_bgsave_time_sec", -1)
	} else {
		w.field("rdb_last_bgsave_time_sec", int64(st.SaveTook.Seconds()))
	}
}

func infoStats(s *Server, w *infoWriter) {
	n := &s.counters
	r := s.rates.now(time.Now(), sample{n.commands.Load(), n.bytesIn.Load(), n.bytesOut.Load()})
	w.field("total_connections_received", n.accepted.Load())
	w.field("total_commands_processed", n.commands.Load())
	w.field("instantaneous_ops_per_sec", int64(r.commands))
	w.field("total_net_input_bytes", n.bytesIn.Load())
	w.field("total_net_output_bytes", n.bytesOut.Load())
	w.field("instantaneous_input_kbps", fmt.Sprintf("%.2f", r.in/1024))
	w.field("instantaneous_output_kbps", fmt.Sprintf("%.2f", r.out/1024))
	w.field("rejected_connections", n.rejected.Load())
	w.field("expired_keys", 0)
	w.field("evicted_keys", 0)
	w.field("keyspace_hits", 0)
	w.field("keyspace_misses", 0)
	w.field("total_error_replies", n.errors.Load())
	w.field("acl_access_denied_auth", n.failedLogins.Load())
}

// infoReplication says master on every node, as ROLE does.
func infoReplication(s *Server, w *infoWriter) {
	st := s.admin.Status()
	w.field("role", "master")
	w.field("connected_slaves", 0)
	w.field("master_replid", fmt.Sprintf("%x", sha1.Sum([]byte(st.ClusterID))))
	w.field("master_repl_offset", st.Applied)
}

func infoRaft(s *Server, w *infoWriter) {
	st := s.admin.Status()
	w.field("node_id", st.ID)
	w.field("raft_id", st.RaftID)
	w.field("raft_role", st.Role)
	w.field("raft_leader_id", st.LeaderID)
	w.field("raft_leader_addr", st.LeaderAddr)
	w.field("raft_term", st.Term)
	w.field("raft_commit_index", st.Commit)
	w.field("raft_applied_index", st.Applied)
	w.field("raft_last_batch", st.Last)
	w.field("raft_voters", st.Voters)
	w.field("cluster_id", st.ClusterID)
	w.field("cluster_generation", st.Generation)
	w.field("ready", oneIf(st.Ready))
	w.field("disk_free", st.DiskFree)
	w.field("disk_low", oneIf(st.DiskLow))
	w.field("raft_log_store", st.LogStore)
	w.field("raft_log_writes", st.LogWrites)
	w.field("raft_log_write_p99_usec", st.LogWriteP99.Microseconds())
	w.field("clock_bounded", st.BoundedClock)
}

func infoLimiter(s *Server, w *infoWriter) {
	st := s.limiter.Stats()
	w.field("allowed", st.Allowed)
	w.field("denied", st.Denied)
	w.field("denied_local", st.DeniedLocal)
	w.field("busy", st.Busy)
	w.field("tryagain", st.TryAgain)
	w.field("indoubt", st.InDoubt)
	w.field("clusterdown", st.ClusterDown)
	w.field("oom", st.OOM)
	w.field("keys", st.Keys)
	w.field("table_bytes", st.TableBytes)
	w.field("rounds", st.Rounds)
	w.field("batch_avg", fmt.Sprintf("%.2f", float64(st.RoundCalls)/float64(max(st.Rounds, 1))))
}

func infoCluster(_ *Server, w *infoWriter) { w.field("cluster_enabled", 0) }

// infoKeyspace has a line for each namespace that is not empty. Every record expires.
func infoKeyspace(s *Server, w *infoWriter) {
	for ns := range uint8(limiter.Namespaces) {
		if n := s.limiter.Size(ns); n > 0 {
			w.field(fmt.Sprintf("db%d", ns), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=0", n, n))
		}
	}
}
