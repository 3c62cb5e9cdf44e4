package resp

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// skipReply returns what follows the first reply of b, which must be well formed
// and of the types in types.
func skipReply(b []byte, types string) (rest []byte, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	switch {
	case !ok, len(line) == 0:
		return nil, fmt.Errorf("no line in %.60q", b)
	case bytes.ContainsAny(line, "\r\n"):
		return nil, fmt.Errorf("line break in %q", line)
	case !strings.ContainsRune(types, rune(line[0])):
		return nil, fmt.Errorf("type of %.60q", line)
	}
	if line[0] == '+' || line[0] == '-' || line[0] == '_' {
		return rest, nil
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		return nil, err
	}
	switch line[0] {
	case ':':
		return rest, nil
	case '$', '=':
		if n == -1 && types == resp2Types {
			return rest, nil
		}
		if n < 0 || n+2 > len(rest) || string(rest[n:n+2]) != "\r\n" {
			return nil, fmt.Errorf("length of %q", line)
		}
		return rest[n+2:], nil
	case '%':
		n *= 2
	}
	for range n {
		if rest, err = skipReply(rest, types); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

const (
	resp2Types = "+-:$*"
	resp3Types = resp2Types + "%~_=>"
)

// sessionInputs are the requests of the golden sessions, one input each and all
// of a file together.
func sessionInputs(tb testing.TB) (inputs [][]byte) {
	files, _ := filepath.Glob("testdata/*.session")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var all []byte
		for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
			if req, ok := strings.CutPrefix(lines.Text(), "> "); ok && req != "QUIT" {
				inputs = append(inputs, []byte(req+"\r\n"))
				all = append(all, req+"\r\n"...)
			}
		}
		inputs = append(inputs, all)
	}
	return inputs
}

func TestEveryCommandGetsOneReply(t *testing.T) {
	inputs := sessionInputs(t)
	if len(inputs) < 200 {
		t.Fatalf("only %d inputs", len(inputs))
	}
	for _, in := range inputs {
		checkReplies(t, func() *session { return newSession(t, Config{}) }, in, 6)
	}
}

// INFO has the fields that tools cannot do without, and sections by name.
func TestInfoFields(t *testing.T) {
	s := newSession(t, Config{Version: "1.2.3", MaxClients: 99})
	fields := func(args ...string) map[string]string {
		_, body, _ := strings.Cut(s.do(append([]string{"INFO"}, args...)...), "\r\n")
		m := map[string]string{}
		for l := range strings.SplitSeq(body, "\r\n") {
			if k, v, ok := strings.Cut(l, ":"); ok {
				m[k] = v
			} else if l != "" {
				m[l] = ""
			}
		}
		return m
	}
	s.do("CL.THROTTLE", "a", "1", "1", "100")
	all := fields()
	for _, name := range strings.Fields(`redis_version limitd_version redis_mode os arch_bits process_id run_id tcp_port uptime_in_seconds uptime_in_days
		connected_clients blocked_clients maxclients used_memory used_memory_human used_memory_rss used_memory_peak maxmemory mem_fragmentation_ratio
		maxmemory_policy loading aof_enabled rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status
		total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes total_net_output_bytes
		instantaneous_input_kbps instantaneous_output_kbps rejected_connections expired_keys evicted_keys keyspace_hits keyspace_misses
		total_error_replies role connected_slaves master_replid master_repl_offset used_cpu_sys used_cpu_user cluster_enabled
		raft_id raft_role raft_leader_id raft_leader_addr raft_term raft_commit_index raft_applied_index raft_last_batch
		allowed denied denied_local busy tryagain indoubt clusterdown keys table_bytes rounds batch_avg db0`) {
		if _, ok := all[name]; !ok {
			t.Errorf("INFO lacks %s", name)
		}
	}
	for name, want := range map[string]string{
		"process_id": strconv.Itoa(os.Getpid()), "limitd_version": "1.2.3", "maxclients": "99", "loading": "0", "role": "master",
		"cluster_enabled": "0", "raft_role": "follower", "batch_avg": "2.50", "db0": "keys=1,expires=1,avg_ttl=0", "total_commands_processed": "1",
	} {
		if all[name] != want {
			t.Errorf("%s is %q, want %q", name, all[name], want)
		}
	}
	if _, ok := all["# Commandstats"]; ok {
		t.Error("Commandstats is there unasked")
	}
	st := &s.admin.status
	st.Saving, st.Saved, st.SaveTook, st.SaveFailed, st.Unsaved = true, time.Unix(1700000123, 0), 2500*time.Millisecond, true, 17
	saves := fields("persistence")
	for name, want := range map[string]string{
		"rdb_changes_since_last_save": "17", "rdb_bgsave_in_progress": "1", "rdb_last_save_time": "1700000123", "rdb_last_bgsave_status": "err", "rdb_last_bgsave_time_sec": "2",
	} {
		if saves[name] != want {
			t.Errorf("%s is %q, want %q", name, saves[name], want)
		}
	}
	s.do("SELECT", "x")
	some := fields("STATS", "commandstats")
	if some["total_error_replies"] != "1" || some["cmdstat_select"] == "" || some["redis_version"] != "" {
		t.Errorf("%v", some)
	}
	if e, d := fields("everything"), fields("default"); len(e) <= len(d) || len(d) <= len(all) || d["errorstat_ERR"] != "count=1" || d["cmdstat_info"] != "" {
		t.Errorf("everything: %v\ndefault: %v", e, d)
	}
	s.limiter.now += 1e15
	if _, ok := fields("keyspace")["db0"]; ok {
		t.Error("an empty namespace has a line")
	}
}
