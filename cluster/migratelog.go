package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"limitd/snapshot"
)

// Migration says what MigrateLog did.
type Migration struct {
	From    string   `json:"from"` // equal to To: the directory was of that store already
	To      string   `json:"to"`
	First   uint64   `json:"first"` // entries copied; 0: the log is empty, or nothing was copied
	Last    uint64   `json:"last"`
	Values  int      `json:"values"`  // of the stable store, copied
	Removed []string `json:"removed"` // old files, or what an interrupted run left
}

// migrateDir is where the new log is built, in the data directory.
const migrateDir = "log.new"

// copyBytes of entries are written at once; tests write fewer.
var copyBytes = 4 << 20

// MigrateLog gives the log and the stable store of a stopped node to another store: it
// copies both, compares the copy entry by entry, names the store in the directory, and
// only then removes the old log. Until the name changes, the old log is the node's;
// from then on the new one is. What an interrupted run left, another one removes.
func MigrateLog(dataDir, to string) (Migration, error) {
	if _, ok := logNames[to]; !ok {
		return Migration{}, fmt.Errorf("log store %q is unknown: use %q or %q", to, StoreBolt, StoreWal)
	}
	lock, err := lockStopped(dataDir)
	if err != nil {
		return Migration{}, err
	}
	defer lock.Close()
	if err := refuseUnfinished(dataDir); err != nil {
		return Migration{}, err
	}
	made, named, err := madeWith(dataDir)
	switch {
	case err != nil:
		return Migration{}, err
	case made == "":
		return Migration{}, fmt.Errorf("data directory %s holds no raft log: raft.log_store of the node that starts with it decides", dataDir)
	}
	m := Migration{From: made, To: to}
	if made == to && !named {
		if err := writeStore(dataDir, to); err != nil {
			return m, err
		}
	}
	if made != to {
		if err := m.migrate(dataDir); err != nil {
			return m, fmt.Errorf("migrate the log of %s from %s to %s: %w", dataDir, made, to, err)
		}
	}
	return m, m.clear(dataDir, to)
}

// clear removes what is not the log of the store.
func (m *Migration) clear(dir, store string) error {
	for _, path := range []string{filepath.Join(dir, migrateDir), logPath(dir, StoreBolt), logPath(dir, StoreWal)} {
		if path == logPath(dir, store) || !present(path) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		m.Removed = append(m.Removed, path)
		snapshot.Failpoint("migrate.removed")
	}
	return syncDir(dir)
}

// migrate makes the new log, and makes it the node's.
func (m *Migration) migrate(dir string) error {
	if err := m.clear(dir, m.From); err != nil {
		return err
	}
	if noLog(dir, m.From) {
		if !absent(filepath.Join(dir, identityFile)) {
			return damagedLog(logPath(dir, m.From), errors.New("it is missing, though this directory is a node's"))
		}
		return writeStore(dir, m.To) // the first start had not come further
	}
	old, err := openLogOf(dir, m.From, true)
	if err != nil {
		return err
	}
	defer old.Close()
	next := filepath.Join(dir, migrateDir)
	if err := os.Mkdir(next, 0o700); err != nil {
		return err
	}
	if err := m.copyLog(old, logPath(dir, m.From), next); err != nil {
		return err
	}
	snapshot.Failpoint("migrate.copied")
	err = os.Rename(logPath(next, m.To), logPath(dir, m.To))
	if err == nil {
		err = errors.Join(os.Remove(next), syncDir(dir))
	}
	if err != nil {
		return err
	}
	snapshot.Failpoint("migrate.renamed")
	if err := m.compare(old, dir); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	snapshot.Failpoint("migrate.compared")
	if err := writeStore(dir, m.To); err != nil {
		return err
	}
	snapshot.Failpoint("migrate.named")
	return nil
}

// copyLog makes the new log in dir, of the old one at path.
func (m *Migration) copyLog(old logFile, path, dir string) error {
	if err := createLog(dir, m.To); err != nil {
		return err
	}
	next, err := openLogOf(dir, m.To, false)
	if err != nil {
		return err
	}
	snapshot.Failpoint("migrate.created")
	err = m.copyValues(old, path, next)
	if err == nil {
		err = m.copyEntries(old, path, next)
	}
	return errors.Join(err, next.Close())
}

func (m *Migration) copyValues(old logFile, path string, next logFile) error {
	values, err := stableValues(old)
	if err != nil {
		return damagedLog(path, err)
	}
	for _, v := range values {
		if err := next.Set(v.key, v.sealed); err != nil {
			return err
		}
		m.Values++
	}
	return nil
}

func (m *Migration) copyEntries(old logFile, path string, next logFile) (err error) {
	if m.First, m.Last, err = logBounds(old); err != nil || m.Last == 0 {
		return err
	}
	var batch []*raft.Log
	size := 0
	for i := m.First; i <= m.Last; i++ {
		l := &raft.Log{}
		if err := old.GetLog(i, l); err != nil {
			return damagedLog(path, err)
		}
		batch = append(batch, l)
		if size += rowFixed + len(l.Data); size < copyBytes && i < m.Last {
			continue
		}
		if err := next.StoreLogs(batch); err != nil {
			return err
		}
		batch, size = nil, 0
		snapshot.Failpoint("migrate.batch")
	}
	return nil
}

// compare reads the new log and compares all that it holds with the old one.
func (m *Migration) compare(old logFile, dir string) error {
	next, err := openLogOf(dir, m.To, true)
	if err != nil {
		return err
	}
	defer next.Close()
	path := logPath(dir, m.To)
	want, err1 := stableValues(old)
	got, err2 := stableValues(next)
	first, last, err3 := logBounds(next)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if len(want) != len(got) || first != m.First || last != m.Last {
		return fmt.Errorf("%s has %d values and entries %d to %d, and should have %d and %d to %d", path, len(got), first, last, len(want), m.First, m.Last)
	}
	for i, v := range want {
		if !bytes.Equal(v.key, got[i].key) || !bytes.Equal(v.sealed, got[i].sealed) {
			return fmt.Errorf("%s: the value of %s reads otherwise than it was written", path, v.key)
		}
	}
	for i := first; i <= last && last > 0; i++ {
		var a, b raft.Log
		if err := errors.Join(old.GetLog(i, &a), next.GetLog(i, &b)); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if a.Index != b.Index || a.Term != b.Term || a.Type != b.Type || !bytes.Equal(a.Data, b.Data) {
			return fmt.Errorf("%s: entry %d reads otherwise than it was written", path, i)
		}
	}
	return nil
}

// stableValue is a value with its checksum.
type stableValue struct{ key, sealed []byte }

// stableValues are all values of a log file but those that it has for itself, in the
// order of their keys, checked.
func stableValues(f logFile) (values []stableValue, err error) {
	var b *boltLog
	switch f := f.(type) {
	case *boltLog:
		b = f
	case *walLog:
		b = f.meta.boltLog
	}
	err = b.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketStable).ForEach(func(k, v []byte) error {
			if bytes.Equal(k, tallyKey) || bytes.Equal(k, segmentsKey) {
				return nil
			}
			values = append(values, stableValue{bytes.Clone(k), bytes.Clone(v)})
			_, err := openValue(k, v)
			return err
		})
	})
	return values, err
}
