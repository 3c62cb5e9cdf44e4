package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"limitd/resp"
)

const exampleFile = "../../cluster.example.toml"

// threeNodes is a sound beginning of a file; what a test appends starts at line 13.
const threeNodes = `[[node]]
id = "n1"
resp = "127.0.0.1:6381"
peer = "127.0.0.1:7381"
[[node]]
id = "n2"
resp = "127.0.0.1:6382"
peer = "127.0.0.1:7382"
[[node]]
id = "n3"
resp = "127.0.0.1:6383"
peer = "127.0.0.1:7383"
`

func TestWrongKeysAreNamedWithTheirLine(t *testing.T) {
	for _, tc := range []struct{ name, doc, want string }{
		{"unknown key", "[raft]\nhartbeat = \"1s\"", "f.toml:14: raft.hartbeat: unknown key"},
		{"unknown table", "[raftt]\nheartbeat = \"1s\"", "f.toml:13: raftt: unknown key"},
		{"unknown key of a node", "[[node]]\nid = \"n4\"\naddr = \"x\"", "f.toml:15: node.addr: unknown key"},
		{"two unknown keys", "[raft]\na = 1\nb = 2", "f.toml:15: raft.b: unknown key"},
		{"no TOML", "raft = = 1", "f.toml:13:"},
		{"key twice", "[peers]\ninsecure = false\ninsecure = false", "f.toml:15"},
		{"not a duration", "[raft]\n\nlease = \"1 second\"", "f.toml:15: raft.lease: \"1 second\" is no duration"},
		{"duration without unit", "[raft]\nlease = 1000", "f.toml:14: raft.lease: 1µs is below 50ms (durations are written with a unit"},
		{"lease above heartbeat", "[raft]\nlease = \"2s\"", "f.toml:14: raft.lease: 2s is above raft.heartbeat (1s)"},
		{"election below heartbeat", "[raft]\nheartbeat = \"3s\"\nelection = \"2s\"", "f.toml:15: raft.election: 2s is below raft.heartbeat (3s)"},
		{"unwritten key blamed", "[raft]\nheartbeat = \"3s\"", "f.toml:13: raft.election: 1s is below raft.heartbeat (3s)"},
		{"log store", "[raft]\nlog_store = \"rocks\"", "f.toml:14: raft.log_store: \"rocks\" is unknown: use \"bolt\" or \"wal\""},
		{"disk stall", "[raft]\ndisk_stall = \"off\"", "f.toml:14: raft.disk_stall: 0s is below 1s"},
		{"wrong type", "[limits]\nmax_queue_requests = \"many\"", "f.toml:14: limits.max_queue_requests:"},
		{"negative", "[limits]\nmax_queue_requests = -1", "f.toml:14: limits.max_queue_requests: -1 is not within"},
		{"size unit", "[limits]\nmax_queue_bytes = \"64MB\"", "f.toml:14: limits.max_queue_bytes: \"64MB\" is no size"},
		{"size overflow", "[limits]\nmax_queue_bytes = \"9999999999GiB\"", "f.toml:14: limits.max_queue_bytes: \"9999999999GiB\" is too large"},
		{"memory share", "[limits]\nmax_memory = \"101%\"", "f.toml:14: limits.max_memory: \"101%\" is no share of memory"},
		{"memory too small", "[limits]\nmax_memory = 1024", "f.toml:14: limits.max_memory: 1KiB is not within 16MiB to"},
		{"negative memory", "[limits]\nmax_memory = -5", "f.toml:14: limits.max_memory: -5B is not within"},
		{"leader wait", "[limits]\nleader_wait = \"2s\"", "f.toml:14: limits.leader_wait: 2s is above limits.request_timeout (1s)"},
		{"key above what is stored", "[limits]\nmax_key = \"32KiB\"", "limits.max_key: 32KiB is not within"},
		{"request above what is forwarded", "[resp]\nmax_request_bytes = \"8MiB\"", "resp.max_request_bytes: 8MiB is not within"},
		{"key above argument", "[limits]\nmax_key = \"32KiB\"\n[resp]\nmax_arg_bytes = \"16KiB\"", "f.toml:14: limits.max_key: 32KiB is above resp.max_arg_bytes (16KiB)"},
		{"an id that is forgotten at once", "[limits]\nid_ttl = \"0s\"", "f.toml:14: limits.id_ttl: "},
		{"buffers for one client", "[resp]\nmax_buffers = \"12MiB\"", "f.toml:14: resp.max_buffers: 12MiB is below twice resp.max_request_bytes (1MiB) or twice resp.output_buffer (8MiB)"},
		{"clients per ip", "[resp]\nmax_clients_per_ip = \"none\"", "f.toml:14: resp.max_clients_per_ip: \"none\" is no count"},
		{"idle timeout", "[resp]\nidle_timeout = 30", "f.toml:14: resp.idle_timeout: 30ns is below 1s"},
		{"user without name", "[[user]]\npassword = \"x\"\ncommands = [\"limit\"]", "f.toml:13: user[0].name: \"\" is no name"},
		{"user with a blank", "[[user]]\nname = \"a b\"\npassword = \"x\"\ncommands = [\"limit\"]", "f.toml:14: user[0].name: \"a b\" is no name"},
		{"user twice", "[[user]]\nname = \"a\"\npassword = \"x\"\ncommands = [\"limit\"]\n[[user]]\nname = \"a\"\npassword = \"x\"\ncommands = [\"limit\"]", "f.toml:18: user[1].name: \"a\" is the name of user[0] too"},
		{"the default user", "[[user]]\nname = \"default\"\npassword = \"x\"\ncommands = [\"limit\"]", "f.toml:14: user[0].name: \"default\" is the user of requirepass"},
		{"no password", "[[user]]\nname = \"a\"\ncommands = [\"limit\"]", "f.toml:13: user[0].password: is missing"},
		{"two passwords", "[[user]]\nname = \"a\"\npassword = \"x\"\npassword_sha256 = \"00\"\ncommands = [\"limit\"]", "f.toml:16: user[0].password_sha256: stands beside a password"},
		{"long password", "[[user]]\nname = \"a\"\npassword = \"" + strings.Repeat("x", 513) + "\"\ncommands = [\"limit\"]", "f.toml:15: user[0].password: is longer than 512 bytes"},
		{"no hash", "[[user]]\nname = \"a\"\npassword_sha256 = \"0123\"\ncommands = [\"limit\"]", "f.toml:15: user[0].password_sha256: is no SHA-256"},
		{"nothing allowed", "[[user]]\nname = \"a\"\npassword = \"x\"", "f.toml:13: user[0].commands: is missing"},
		{"unknown group", "[[user]]\nname = \"a\"\npassword = \"x\"\ncommands = [\"limits\"]", "f.toml:16: user[0].commands: \"limits\" is unknown"},
		{"no keys", "[[user]]\nname = \"a\"\npassword = \"x\"\ncommands = [\"limit\"]\nkeys = []", "f.toml:17: user[0].keys: no pattern is listed"},
		{"empty pattern", "[[user]]\nname = \"a\"\npassword = \"x\"\ncommands = [\"limit\"]\nkeys = [\"\"]", "f.toml:17: user[0].keys: a pattern is empty"},
		{"unknown key of a user", "[[user]]\nname = \"a\"\npass = \"x\"", "f.toml:15: user.pass: unknown key"},
		{"id twice", "[[node]]\nid = \"n1\"\nresp = \"127.0.0.1:1\"\npeer = \"127.0.0.1:2\"", "f.toml:14: node[3].id: \"n1\" is the id of node[0] too"},
		{"bad id", "[[node]]\nid = \"../n4\"\nresp = \"127.0.0.1:1\"\npeer = \"127.0.0.1:2\"", "f.toml:14: node[3].id: \"../n4\" is no node id"},
		{"address missing", "[[node]]\nid = \"n4\"\nresp = \"127.0.0.1:1\"", "f.toml:13: node[3].peer: \"\" is no host:port"},
		{"address twice", "[[node]]\nid = \"n4\"\nresp = \"127.0.0.1:1\"\npeer = \"127.0.0.1:6381\"", "f.toml:16: node[3].peer: 127.0.0.1:6381 is node[0].resp too"},
		{"port", "[[node]]\nid = \"n4\"\nresp = \"127.0.0.1:0\"\npeer = \"127.0.0.1:2\"", "f.toml:15: node[3].resp: \"127.0.0.1:0\" has no port from 1 to 65535"},
		{"clients beyond loopback", "[[node]]\nid = \"n4\"\nresp = \"0.0.0.0:1\"\npeer = \"127.0.0.1:2\"", "f.toml:15: node[3].resp: 0.0.0.0:1 is reachable from other machines, and clients need no password: add the line  requirepass = \""},
		{"clients on all interfaces", "[[node]]\nid = \"n4\"\nresp = \":1\"\npeer = \"127.0.0.1:2\"", "f.toml:15: node[3].resp: :1 is reachable from other machines"},
		{"peers beyond loopback", "[[node]]\nid = \"n4\"\nresp = \"127.0.0.1:1\"\npeer = \"10.0.0.4:2\"", "f.toml:16: node[3].peer: 10.0.0.4:2 is reachable from other machines, and peers are not authenticated"},
		{"peers by name", "[[node]]\nid = \"n4\"\nresp = \"127.0.0.1:1\"\npeer = \"node4.example:2\"", "f.toml:16: node[3].peer: node4.example:2 is reachable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parseConfig("f.toml", []byte(threeNodes+tc.doc+"\n"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// With a password clients may come from anywhere; the line that the error of one
// without tells is one that works.
func TestListeningBeyondLoopback(t *testing.T) {
	open := strings.ReplaceAll(threeNodes, `resp = "127.0.0.1`, `resp = "0.0.0.0`)
	_, err := parseConfig("f.toml", []byte(open))
	if err == nil {
		t.Fatal("accepted without a password")
	}
	_, line, found := strings.Cut(err.Error(), "add the line  ")
	line, _, end := strings.Cut(line, "  at the top")
	if !found || !end {
		t.Fatalf("no line to add in: %v", err)
	}
	c, err := parseConfig("f.toml", []byte(line+"\n"+open))
	if err != nil || len(c.RequirePass) < 32 {
		t.Errorf("%q: %v", line, err)
	}
	if _, err := parseConfig("f.toml", []byte(open+"[[user]]\nname = \"a\"\npassword = \"x\"\ncommands = [\"limit\"]\n")); err != nil {
		t.Errorf("with a named user: %v", err)
	}
}

func TestUsersArrive(t *testing.T) {
	c, err := parseConfig("f.toml", []byte("requirepass = \"sekret\"\n"+threeNodes+`
[[user]]
name = "app"
password = "sekret2"
commands = ["limit", "read"]
keys = ["app:*", "shared"]
[[user]]
name = "root"
password_sha256 = "2BB80D537B1DA3E38BD30361AA855686BDE0EACD7162FEF6A25FE97BF527A25B"
commands = ["admin"]
keys = ["*"]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []resp.User{
		{Name: "default", Password: sha256.Sum256([]byte("sekret")), May: resp.MayLimit | resp.MayRead | resp.MayAdmin},
		{Name: "app", Password: sha256.Sum256([]byte("sekret2")), May: resp.MayLimit | resp.MayRead, Keys: []string{"app:*", "shared"}},
		{Name: "root", Password: sha256.Sum256([]byte("secret")), May: resp.MayAdmin},
	}
	if got := c.respUsers(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := c.ownLogin(); got != (login{"", "sekret"}) {
		t.Errorf("logs in as %+v", got)
	}
	c.RequirePass = ""
	if got := c.ownLogin(); got != (login{}) {
		t.Errorf("logs in as %+v, whose password it does not know", got)
	}
	c.Users[0].Commands = []string{"admin"}
	if got := c.ownLogin(); got != (login{"app", "sekret2"}) {
		t.Errorf("logs in as %+v", got)
	}
}

func TestAllWrongValuesComeAtOnce(t *testing.T) {
	_, err := parseConfig("f.toml", []byte("[raft]\nlease = \"2s\"\n[limits]\nmax_key = 0\n[resp]\nmax_args = 1\n"))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"f.toml: node: no [[node]]", "f.toml:2: raft.lease", "f.toml:4: limits.max_key", "f.toml:6: resp.max_args"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestPeersBeyondLoopbackNeedInsecure(t *testing.T) {
	c, err := parseConfig("f.toml", []byte("[peers]\ninsecure = true\n"+strings.ReplaceAll(threeNodes, "127.0.0.1:73", "10.0.0.1:73")))
	if err != nil {
		t.Fatal(err)
	}
	if c.Nodes[2].Peer != "10.0.0.1:7383" {
		t.Errorf("peer of n3 = %q", c.Nodes[2].Peer)
	}
}

func TestValuesArrive(t *testing.T) {
	c, err := parseConfig("f.toml", []byte(threeNodes+`
[limits]
request_timeout = "1m30s"
max_memory = "2GiB"
max_queue_bytes = 1048577
[resp]
max_clients_per_ip = 7
idle_timeout = "off"
`))
	if err != nil {
		t.Fatal(err)
	}
	if time.Duration(c.Limits.RequestTimeout) != 90*time.Second || c.Limits.MaxMemory != (Memory{Bytes: 2 << 30}) ||
		c.Limits.MaxQueueBytes != 1<<20+1 || c.RESP.MaxClientsPerIP != 7 || c.RESP.IdleTimeout != 0 {
		t.Errorf("got %+v", c)
	}
	if c.Nodes[1].Data != filepath.Join("limitd-data", "n2") {
		t.Errorf("data of n2 = %q", c.Nodes[1].Data)
	}
}

func TestExampleShowsTheDefaults(t *testing.T) {
	c, err := LoadConfig(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Nodes = c.Nodes
	if !reflect.DeepEqual(c, want) {
		t.Errorf("cluster.example.toml says %+v\nthe defaults are        %+v", c, want)
	}
}

func TestExampleShowsEveryKey(t *testing.T) {
	doc, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	doc = regexp.MustCompile(`(?m)^#   (requirepass|\[\[user|name|password|commands|keys)`).ReplaceAll(doc, []byte("$1"))
	if _, err := parseConfig(exampleFile, doc); err != nil {
		t.Errorf("with its passwords: %v", err)
	}
	lines := keyLines(doc)
	top := reflect.TypeFor[Config]()
	for i := range top.NumField() {
		table, name := top.Field(i).Type, top.Field(i).Tag.Get("toml")
		if table.Kind() == reflect.String {
			if lines[name] == 0 {
				t.Errorf("cluster.example.toml lacks %s", name)
			}
			continue
		}
		if table.Kind() == reflect.Slice {
			table, name = table.Elem(), name+"[0]"
		}
		for j := range table.NumField() {
			key := name + "." + table.Field(j).Tag.Get("toml")
			if lines[key] == 0 && !strings.Contains(string(doc), table.Field(j).Tag.Get("toml")+" = ") {
				t.Errorf("cluster.example.toml lacks %s", key)
			}
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(threeNodes + "[raft]\nlease = 1\n"))
	f.Add([]byte("a.b.c = {d = [1, {e = 2}]}\n[[x.y]]\n[x.y.z]\n"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := parseConfig("f.toml", doc)
		if err == nil && c.Validate() != nil {
			t.Errorf("accepted what Validate refuses: %v", c.Validate())
		}
	})
}
