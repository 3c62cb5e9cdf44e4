package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// threeNodesFile writes a configuration file for three nodes with their data in dir.
func threeNodesFile(t *testing.T, dir string, firstPort int) string {
	t.Helper()
	var b strings.Builder
	for i := range 3 {
		fmt.Fprintf(&b, "[[node]]\nid = \"n%d\"\nresp = \"127.0.0.1:%d\"\npeer = \"127.0.0.1:%d\"\ndata = %q\n", i+1, firstPort+i, firstPort+1000+i, filepath.Join(dir, fmt.Sprint("n", i+1)))
	}
	file := filepath.Join(t.TempDir(), "cluster.toml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func runVerb(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return o.String(), e.String(), code
}

const goldenState = "../../snapshot/testdata/stream-v1.bin"

func TestRestoreAndRecoverSayWhatToTypeNext(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "n2")
	file := threeNodesFile(t, dir, 6381)

	out, stderr, code := runVerb(t, "snapshot", "restore", goldenState, "--data-dir", data, "--node", "n2", "--config", file)
	for _, line := range []string{
		"limitd serve --config " + file + " --node n2\n",
		"limitd serve --config " + file + " --node n1 --join 127.0.0.1:6382\n",
		"limitd serve --config " + file + " --node n3 --join 127.0.0.1:6382\n",
	} {
		if code != exitOK || !strings.Contains(out, line) {
			t.Errorf("restore: code %d, no line %q in\n%s%s", code, line, out, stderr)
		}
	}

	moved := threeNodesFile(t, dir, 6391) // the node is to be at another address, so it has something to recover
	out, stderr, code = runVerb(t, "recover", "--data-dir", data, "--peers", moved)
	if code != exitOK || !strings.Contains(out, "Nothing was changed.") || !strings.Contains(out, "--yes") || !strings.Contains(out, "last_entry") || !strings.Contains(out, "Lost:") {
		t.Errorf("without --yes: code %d\n%s%s", code, out, stderr)
	}
	out, stderr, code = runVerb(t, "recover", "--data-dir", data, "--peers", moved, "--yes")
	for _, line := range []string{
		"limitd serve --config " + moved + " --node n2\n",
		"mv " + filepath.Join(dir, "n1") + " " + filepath.Join(dir, "n1.lost") + "\n",
		"limitd serve --config " + moved + " --node n1 --join 127.0.0.1:6392\n",
		"limitd serve --config " + moved + " --node n3 --join 127.0.0.1:6392\n",
	} {
		if code != exitOK || !strings.Contains(out, line) {
			t.Errorf("recover: code %d, no line %q in\n%s%s", code, line, out, stderr)
		}
	}
	for _, name := range []string{"last_term", "last_entry", "cluster_time", "entries_beyond", "records", "raft_id", "new_raft_id", "generation", "new_generation", "old_files"} {
		if !strings.Contains(out, "\n"+name+" ") {
			t.Errorf("recover does not print %s:\n%s", name, out)
		}
	}
}

func TestRecoverPrintsJSON(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "elsewhere")
	if _, stderr, code := runVerb(t, "snapshot", "restore", goldenState, "--data-dir", data, "--node", "n1", "--json"); code != exitOK {
		t.Fatal(stderr)
	}
	file := threeNodesFile(t, dir, 6381)
	out, _, _ := runVerb(t, "recover", "--data-dir", data, "--peers", file, "--yes", "--json")
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil || got["node"] != "n1" || got["generation"] != 1.0 || got["new_generation"] != 2.0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestRecoverAndRestoreRefuseWhatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	file := threeNodesFile(t, dir, 6381)
	data := filepath.Join(dir, "x9")
	if _, stderr, code := runVerb(t, "snapshot", "restore", goldenState, "--data-dir", data, "--node", "x9"); code != exitOK {
		t.Fatal(stderr)
	}
	for _, c := range []struct {
		words []string
		args  []string
	}{
		{[]string{"does not list node x9", file}, []string{"recover", "--data-dir", data, "--peers", file, "--yes"}},
		{[]string{"peers", "required"}, []string{"recover", "--data-dir", data, "--yes"}},
		{[]string{"data-dir", "required"}, []string{"recover", "--peers", file, "--yes"}},
		{[]string{"--data-dir", "no such file"}, []string{"recover", "--data-dir", data + "gone", "--peers", file}},
		{[]string{"--peers", "no such file"}, []string{"recover", "--data-dir", data, "--peers", file + "gone"}},
		{[]string{"holds no node"}, []string{"recover", "--data-dir", dir, "--peers", file}},
		{[]string{"node", "required"}, []string{"snapshot", "restore", goldenState, "--data-dir", data + "2"}},
		{[]string{"--node x9", file}, []string{"snapshot", "restore", goldenState, "--data-dir", data + "2", "--node", "x9", "--config", file}},
		{[]string{"--node", `"x 9"`}, []string{"snapshot", "restore", goldenState, "--data-dir", data + "2", "--node", "x 9"}},
		{[]string{"--peer-listen", "peers.insecure"}, []string{"snapshot", "restore", goldenState, "--data-dir", data + "2", "--node", "x9", "--peer-listen", "10.0.0.1:7380"}},
		{[]string{data, "not empty"}, []string{"snapshot", "restore", goldenState, "--data-dir", data, "--node", "x9"}},
		{[]string{file, "no snapshot of limitd"}, []string{"snapshot", "restore", file, "--data-dir", data + "2", "--node", "x9"}},
	} {
		_, stderr, code := runVerb(t, c.args...)
		for _, w := range c.words {
			if code != exitError || !strings.Contains(stderr, w) {
				t.Errorf("limitd %s: code %d, want %q in %q", strings.Join(c.args, " "), code, w, stderr)
			}
		}
	}
}
