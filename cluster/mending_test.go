package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolterrors "go.etcd.io/bbolt/errors"

	"limitd/fsm"
	"limitd/snapshot"
)

// What can be put right without a new directory must not tell to throw one away.
func TestOnlyWhatIsForEverIsToldHowToReplaceTheNode(t *testing.T) {
	n := &Node{cfg: Config{ID: "n2", DataDir: t.TempDir(), Members: []Member{{"n1", "127.0.0.1:6381", "127.0.0.1:7381"}, {"n2", "127.0.0.1:6382", "127.0.0.1:7382"}}}}
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"a damaged log", damagedLog("raft.db", errors.New("entry 5 is missing")), true},
		{"an old copy", staleLog("raft.db", "it ends at entry 5"), true},
		{"a snapshot that does not reach the log", lostBetween("raft.db", "snapshot.db", 9, 5), true},
		{"a damaged snapshot file", fmt.Errorf("snapshot.db is %w", snapshot.ErrDamaged), true},
		{"a state that diverged", fmt.Errorf("entry 5: %w", fsm.ErrUntrusted), true},
		{"a damaged identity", fmt.Errorf("identity: %w", errIdentity), true},

		{"another process", damagedLog("raft.db", bolterrors.ErrTimeout), false},
		{"a file that may not be read", damagedLog("raft.db", &fs.PathError{Op: "open", Path: "raft.db", Err: fs.ErrPermission}), false},
		{"a newer limitd", damagedLog("raft.db", fmt.Errorf("row: %w", ErrVersion)), false},
		{"a write that failed", errors.New("write raft.db: input/output error"), false},
	} {
		err := n.mend(tc.err)
		if !errors.Is(err, tc.err) || !strings.HasPrefix(err.Error(), tc.err.Error()) {
			t.Errorf("%s: %v has become %v", tc.name, tc.err, err)
		}
		if got := strings.Contains(err.Error(), "`limitd cluster remove n2 --addr 127.0.0.1:6381`"); got != tc.want {
			t.Errorf("%s: told to replace the node: %v\n%v", tc.name, got, err)
		}
		if again := n.mend(err); again != err {
			t.Errorf("%s: it is told twice: %v", tc.name, again)
		}
	}
	if n.mend(nil) != nil {
		t.Error("no error has become one")
	}
}

func TestMendingNamesWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n1")
	c := Config{ID: "n1", DataDir: dir, Members: []Member{{"n1", "127.0.0.1:6381", "127.0.0.1:7381"}}}
	wants := func(words ...string) {
		t.Helper()
		for _, w := range words {
			if got := c.mending(); !strings.Contains(got, w) {
				t.Errorf("it does not say %q: %s", w, got)
			}
		}
	}
	wants("`mv "+dir+" "+dir+".damaged-1`", "`limitd snapshot restore FILE --data-dir "+dir+" --node n1 --peer-listen 127.0.0.1:7381`")
	if err := os.MkdirAll(filepath.Join(dir, backupsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"limitd-20260101T000000Z-900.snapshot", "limitd-20260301T000000Z-5.snapshot", "limitd-20260301T000000Z-5.snapshot.tmp"} {
		write(t, filepath.Join(dir, backupsDir, name), "")
	}
	if err := os.Mkdir(dir+".damaged-1", 0o700); err != nil {
		t.Fatal(err)
	}
	wants("`mv "+dir+" "+dir+".damaged-2`", "restore "+dir+".damaged-2/backups/limitd-20260301T000000Z-5.snapshot ")
}
