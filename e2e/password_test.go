package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// guarded is a beginning of a configuration whose clients need passwords.
const guarded = `requirepass = "sekret"
[[user]]
name = "app"
password = "sekret2"
commands = ["limit"]
keys = ["app:*"]
`

// TestPasswords: a cluster whose clients need passwords, asked by redis-cli, by the
// verbs, and by a node that joins it.
func TestPasswords(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, guarded)
	for _, nd := range c.nodes {
		nd.r = client{t, redis.NewClient(&redis.Options{Addr: nd.resp, Password: "sekret", MaxRetries: -1, DisableIdentity: true, Protocol: 2, ReadTimeout: 10 * time.Second})}
		defer nd.r.Close()
		c.start(nd)
	}
	c.awaitAllDecide()
	at := c.nodes[1]
	_, port, _ := strings.Cut(at.resp, ":")
	for _, tc := range []struct{ args, want string }{
		{"PING", "NOAUTH Authentication required."},
		{"CL.THROTTLE app:k 1 1 3600", "NOAUTH Authentication required."},
		{"-a sekret --no-auth-warning PING", "PONG"},
		{"-a sekre --no-auth-warning PING", "WRONGPASS"},
		{"-3 --user app -a sekret2 --no-auth-warning CL.THROTTLE app:k 1 1 3600", "3) (integer) 1"},
		{"--user app -a sekret2 --no-auth-warning CL.THROTTLE k 1 1 3600", "NOPERM this user has no permissions to access one of the keys"},
		{"--user app -a sekret2 --no-auth-warning FLUSHALL", "NOPERM this user has no permissions to run the 'flushall' command"},
	} {
		out, _ := exec.Command(tools.redisCLI, append([]string{"-p", port, "--no-raw"}, strings.Fields(tc.args)...)...).CombinedOutput()
		if !strings.Contains(string(out), tc.want) {
			t.Errorf("redis-cli %s: %q, want %q", tc.args, out, tc.want)
		}
	}
	for _, tc := range []struct {
		env, args string
		code      int
		want      string
	}{
		{"", "throttle app:v 1 1 3600", 2, "NOAUTH Authentication required. Set LIMITD_PASSWORD"},
		{"LIMITD_PASSWORD=sekret", "throttle app:v 1 1 3600", 0, "allowed: 1 of 2 left"},
		{"LIMITD_PASSWORD=sekret", "cluster nodes", 0, "leader"},
		{"LIMITD_USER=app LIMITD_PASSWORD=sekret2", "cluster nodes", 2, "NOPERM"},
		{"LIMITD_PASSWORD=wrong", "take app:v 5/1h --user app --password sekret2", 0, "allowed: 4 of 5 left"},
	} {
		cmd := exec.Command(tools.limitd, append(strings.Fields(tc.args), "--addr", at.resp)...)
		cmd.Env = append(os.Environ(), strings.Fields(tc.env)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s limitd %s: code %d, want %d with %q\n%s", tc.env, tc.args, code, tc.code, tc.want, out)
		}
	}

	// A node with the same file joins by its own; one that does not know the password is told.
	stranger := &node{id: "n4", data: filepath.Join(c.dir, "n4")}
	ports := reservePorts(t, 2)
	stranger.args = []string{"serve", "--node", "n4", "--listen", addr(ports[0]), "--peer-listen", addr(ports[1]), "--data-dir", stranger.data, "--join", at.resp}
	c.start(stranger)
	eventually(t, 10*time.Second, "the stranger gives up", func() bool {
		select {
		case <-stranger.done:
			return true
		default:
			return false
		}
	})
	if out := stranger.out.String(); !strings.Contains(out, "NOAUTH Authentication required.: give this node's file the requirepass of the cluster") {
		t.Errorf("the stranger said:\n%s", tail(out, 5))
	}
	n3 := c.list("n3")
	n3.args = append(n3.args, "--join", at.resp)
	c.start(n3)
	eventually(t, 20*time.Second, "n3 is a voter", func() bool {
		cmd := exec.Command(tools.limitd, "cluster", "nodes", "--addr", at.resp, "--password", "sekret", "--json")
		out, _ := cmd.CombinedOutput()
		return strings.Count(string(out), `"voter"`) == 2
	})
}

// TestWithoutAPasswordNoPortIsOpen: beyond loopback only with a password.
func TestWithoutAPasswordNoPortIsOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	port := reserveOn(t, allAddresses)
	args := []string{"serve", "--listen", "0.0.0.0:" + strconv.Itoa(port), "--peer-listen", addr(reservePorts(t, 1)[0]), "--data-dir", filepath.Join(dir, "d")}
	_, stderr, code := limitd(t, args...)
	if code != 2 || !strings.Contains(stderr, "is reachable from other machines, and clients need no password: say --requirepass-file") {
		t.Errorf("code %d: %s", code, stderr)
	}
	file := filepath.Join(dir, "password")
	if err := os.WriteFile(file, []byte("sekret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, dir, "open", append(args, "--requirepass-file", file)...)
	r := redis.NewClient(&redis.Options{Addr: addr(port), Password: "sekret", MaxRetries: -1, DisableIdentity: true, Protocol: 2})
	defer r.Close()
	eventually(t, 10*time.Second, "it decides", func() bool {
		_, err := client{t, r}.throttle("k", 1, 1, 60, 1)
		return err == nil
	})
}
