package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTools: what people look at a Redis with looks at a node.
func TestTools(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	nd := c.nodes[0]
	port := portOf(nd.resp)
	for i := range int64(20) {
		nd.r.mustThrottle(fmt.Sprint("user:", i), 15, 16, 86400, 1)
	}
	cli := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(tools.redisCLI, append([]string{"-p", port}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("redis-cli %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	want := func(t *testing.T, out string, patterns ...string) {
		t.Helper()
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(out) {
				t.Errorf("it does not say %q:\n%s", p, out)
			}
		}
	}

	t.Run("stat", func(t *testing.T) {
		term := openTerminal(t, tools.redisCLI, "-p", port, "--stat", "-i", "0.1")
		// keys, memory, clients, blocked, requests, connections
		row := regexp.MustCompile(`(?m)^20 +\d+\.\d\d[KM] +\d+ +0 +\d+ \(\+\d+\) +\d+`)
		eventually(t, 10*time.Second, "three rows", func() bool { return len(row.FindAllString(term.screen(), -1)) > 2 })
	})
	t.Run("latency", func(t *testing.T) {
		want(t, cli("--latency", "--raw", "-i", "0.2"), `^\d+ \d+ \d+\.\d\d [1-9]\d*\n$`)
	})
	t.Run("bigkeys", func(t *testing.T) {
		want(t, cli("--bigkeys"), `Sampled 20 keys in the keyspace!`, `Total key length in bytes is 130`, `20 limits with 0 \?`)
	})
	t.Run("memkeys", func(t *testing.T) {
		want(t, cli("--memkeys"), `Sampled 20 keys in the keyspace!`, `Biggest +limit found '"user:\d+"' has [3-9]\d bytes`, `20 limits with [6-9]\d\d bytes`)
	})
	t.Run("hotkeys", func(t *testing.T) {
		out, _ := exec.Command(tools.redisCLI, "-p", port, "--hotkeys").CombinedOutput() // it ends with an error, on a Redis too
		want(t, string(out), `An LFU maxmemory policy is not selected`)
	})
	t.Run("scan", func(t *testing.T) {
		if n := len(strings.Fields(cli("--scan", "--pattern", "user:*"))); n != 20 {
			t.Errorf("%d keys of 20", n)
		}
	})
	t.Run("hints", func(t *testing.T) {
		term := openTerminal(t, tools.redisCLI, "-p", port)
		term.await("> ")
		term.typeIn("help cl.throttle\r")
		term.await("CL.THROTTLE key max_burst count period [quantity]")
		term.await("summary: Charges quantity")
		term.typeIn("client kill ")
		term.await("client kill old-format|[ID client-id]")
		term.typeIn("\x15rl.take key ")
		term.await("rl.take key limit [COST units] [PEEK] [ID token] [TRACE]")
		term.typeIn("\x15rl.tak\t\t") // completes to the next one
		term.await("RL.TAKEALL")
		term.typeIn("\x15cl.throttle other 15 16 86400 1\r")
		term.await("1) (integer) 0\n2) (integer) 16\n3) (integer) 15\n")
	})
	t.Run("exporter", func(t *testing.T) { exporterScrapes(t, nd) })
	t.Run("StackExchange.Redis", func(t *testing.T) { probe(t, nd.resp, stackExchange) })
	t.Run("RedisInsight", func(t *testing.T) { probe(t, nd.resp, redisInsight) })
	t.Run("http", func(t *testing.T) {
		if r, err := http.Get("http://" + nd.resp + "/"); err == nil {
			t.Errorf("a browser got %s", r.Status)
		}
		eventually(t, 10*time.Second, "the log speaks of it", func() bool { return strings.Contains(nd.out.String(), "HTTP on the RESP port") })
	})
}

// exporterScrapes runs the Prometheus exporter for Redis and reads what it exports.
func exporterScrapes(t *testing.T, nd *node) {
	path, err := exec.LookPath("prometheus-redis-exporter")
	if err != nil {
		t.Fatalf("prometheus-redis-exporter is missing, and the test needs it: apt-get install prometheus-redis-exporter (%v)", err)
	}
	at := addr(reservePorts(t, 1)[0])
	p := launchBinary(t, path, nil, t.TempDir(), "exporter", "-redis.addr", "redis://"+nd.resp, "-web.listen-address", at,
		"-export-client-list", "-ping-on-connect", "-include-config-metrics", "-include-system-metrics", "-count-keys", "db0=user:*")
	var text string
	eventually(t, 10*time.Second, "the exporter answers", func() bool {
		r, err := http.Get("http://" + at + "/metrics")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		text = string(b)
		return err == nil && r.StatusCode == http.StatusOK
	})
	for _, line := range []string{
		"redis_up 1", "redis_exporter_last_scrape_error{err=\"\"} 0", "redis_connected_slaves 0", "redis_db_keys{db=\"db0\"} 21", "redis_master_repl_offset ", "redis_uptime_in_seconds ",
		"redis_commands_total{cmd=\"cl.throttle\"} ", "redis_commands_duration_seconds_total{cmd=\"cl.throttle\"} ", "redis_memory_used_bytes ", "redis_connected_clients ",
		"redis_config_maxclients 20000", "redis_keys_count{db=\"db0\",key=\"user:*\"} 20", "redis_connected_clients_details{", "redis_slowlog_length 0", "redis_instance_info{",
	} {
		if !strings.Contains("\n"+text, "\n"+line) {
			t.Errorf("the exporter does not export %s", line)
		}
	}
	if t.Failed() {
		t.Logf("it exports:\n%s", text)
	}
	if log := p.out.String(); strings.Contains(log, "level=error") || strings.Contains(log, "level=warn") {
		t.Errorf("the exporter complains:\n%s", log)
	}
}
