package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExampleConfigurationRuns starts the nodes of cluster.example.toml as the
// file says, on other ports.
func TestExampleConfigurationRuns(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../cluster.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, dir: t.TempDir()}
	c.file = filepath.Join(c.dir, "cluster.toml")
	ports := reservePorts(t, 6)
	config := string(text)
	for i := range 3 {
		for offset, port := range map[int]int{6381: ports[2*i], 7381: ports[2*i+1]} {
			old := `"` + addr(offset+i) + `"`
			if strings.Count(config, old) != 1 {
				t.Fatalf("%s is not in the example, or twice", old)
			}
			config = strings.Replace(config, old, `"`+addr(port)+`"`, 1)
		}
		id := fmt.Sprintf("n%d", i+1)
		c.nodes = append(c.nodes, &node{id: id, resp: addr(ports[2*i]), r: dial(t, addr(ports[2*i])),
			args: []string{"serve", "--config", c.file, "--node", id}})
	}
	if err := os.WriteFile(c.file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, nd := range c.nodes {
		c.start(nd)
	}
	for i, nd := range c.nodes {
		c.awaitDecides(nd)
		if r := nd.r.mustThrottle("user:42", 15, 16, 86400, 1); r[0] != 0 || r[2] != int64(15-i) {
			t.Errorf("%s: %v", nd.id, r)
		}
		if _, err := os.Stat(filepath.Join(c.dir, "limitd-data", nd.id, walDir)); err != nil {
			t.Errorf("the data of %s are not where the example says: %v", nd.id, err)
		}
	}
}
