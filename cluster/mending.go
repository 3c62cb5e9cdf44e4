package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	bolterrors "go.etcd.io/bbolt/errors"

	"limitd/fsm"
	"limitd/snapshot"
)

// backupsDir is where saved snapshots are, in the data directory.
const backupsDir = "backups"

// untrusted is why this node must not go on with its data directory: it may have
// forgotten what others count on. What mends it is said once, by mend.
type untrusted struct{ error }

func (u untrusted) Unwrap() error { return u.error }

// damagedLog is the refusal to go on with a log or a stable store that cannot be
// trusted.
func damagedLog(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("open raft log %s: another process has it open: stop that process, or give this node a directory of its own", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open raft log %s: %w", path, err)
	case errors.Is(err, ErrVersion):
		return fmt.Errorf("raft log %s: %w", path, err)
	}
	if !errors.Is(err, snapshot.ErrDamaged) { // else it says so, and names the file
		err = fmt.Errorf("%s is damaged: %w", path, err)
	}
	return untrusted{fmt.Errorf("raft log %w; this node may have forgotten entries and votes that others count on", err)}
}

// staleLog is the same for one that is whole and older than what the node had.
func staleLog(path, how string) error {
	return untrusted{fmt.Errorf("raft log %s is an old copy: %s; this node would have forgotten entries and votes that others count on: put the newest copy back, if there is one", path, how)}
}

// lostBetween is the refusal of a log that begins after entry from, and a snapshot
// that ends at index, before it.
func lostBetween(log, snapshot string, from, index uint64) error {
	what := fmt.Sprintf("an old copy, or damaged: it ends at entry %d", index)
	if index == 0 {
		what = "missing, or empty"
	}
	return untrusted{fmt.Errorf("snapshot file %s is %s, and the raft log %s goes on from entry %d: what is between is lost; put the newest copy back, if there is one", snapshot, what, log, from)}
}

// otherNode is the refusal of a file that another node, or the node that was here
// before this one joined, has written.
func otherNode(path, of, self string) error {
	return untrusted{fmt.Errorf("%s is of raft id %s, and the file %s beside it says %s: one of the two is an old copy or of another node: put the right one back, if there is one", path, of, identityFile, self)}
}

// mend adds to an error that is for ever how the node comes back. All others it
// returns as they are.
func (n *Node) mend(err error) error {
	var u untrusted
	var m mended
	switch {
	case err == nil, errors.As(err, &m), errors.Is(err, ErrVersion):
		return err
	case errors.As(err, &u), errors.Is(err, snapshot.ErrDamaged), errors.Is(err, fsm.ErrUntrusted), errors.Is(err, errIdentity):
		return mended{err, n.cfg.mending()}
	}
	return err
}

// mended is an error that says what to do.
type mended struct {
	error
	todo string
}

func (m mended) Error() string { return m.error.Error() + ". " + m.todo }
func (m mended) Unwrap() error { return m.error }

// mending is what to type when the data directory of this node cannot be trusted
// any more.
func (c Config) mending() string {
	away := c.freeName()
	restore := fmt.Sprintf("`limitd snapshot restore %s --data-dir %s --node %s --peer-listen %s`", c.newestBackup(away), c.DataDir, c.ID, c.self().Peer)
	if c.LogStore != "" && c.LogStore != NewStore {
		restore = strings.TrimSuffix(restore, "`") + " --log-store " + c.LogStore + "`"
	}
	replace := func(member string) string {
		return fmt.Sprintf("`limitd cluster remove %s --addr %s`, `mv %s %s`, and start this node with `--join %s`", c.ID, member, c.DataDir, away, member)
	}
	for _, m := range c.Members {
		if m.ID != c.ID {
			return fmt.Sprintf("To replace it: %s (or another member that is well). If too few nodes are well for that: `limitd recover` on the one of them with the highest last entry; if none is: `mv %s %s`, %s, and the others join",
				replace(m.Resp), c.DataDir, away, restore)
		}
	}
	return fmt.Sprintf("If this node is the only one: `mv %s %s`, and %s. If it is one of several, with the client address of another: %s", c.DataDir, away, restore, replace("ADDRESS"))
}

// freeName is a name for the data directory to be moved to.
func (c Config) freeName() string {
	dir := filepath.Clean(c.DataDir)
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.damaged-%d", dir, n)
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}

// newestBackup is the newest saved snapshot in the data directory, once that is
// moved to away; FILE if there is none.
func (c Config) newestBackup(away string) string {
	saved, _ := filepath.Glob(filepath.Join(c.DataDir, backupsDir, "*.snapshot"))
	if len(saved) == 0 {
		return "FILE"
	}
	newest := saved[len(saved)-1] // their names begin with the time
	return filepath.Join(away, backupsDir, filepath.Base(newest))
}
