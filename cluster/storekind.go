package cluster

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The log and the stable store are kept by one of two stores, and a data directory
// says by which: the file storeFile in it names the one that it was made with. A
// directory without that file, and with raft.db, is of a limitd that knew no other.
const (
	StoreBolt = "bolt" // raft.db, a bbolt file
	StoreWal  = "wal"  // raft.wal, a directory with the segments of a raft-wal

	storeFile   = "log-store"
	storeHeader = "limitd-log-store 1"
)

// NewStore keeps the log of a data directory that is made new, unless another one is asked for.
const NewStore = StoreWal

// LogStores are the values of Config.LogStore, beside the empty one.
var LogStores = []string{StoreBolt, StoreWal}

// errStore is for a file that does not name a store.
var errStore = errors.New("damaged file of the log store")

// logNames are what the stores keep in a data directory.
var logNames = map[string]string{StoreBolt: logName, StoreWal: walName}

// logPath is where a store keeps the log of the directory.
func logPath(dir, store string) string { return filepath.Join(dir, logNames[store]) }

func formatStore(store string) []byte {
	s := storeHeader + "\n" + store + "\n"
	return fmt.Appendf(nil, "%s%08x\n", s, crc32.Checksum([]byte(s), castagnoli))
}

func writeStore(dir, store string) error {
	if err := writeWhole(filepath.Join(dir, storeFile), formatStore(store)); err != nil {
		return fmt.Errorf("write the name of the log store: %w", err)
	}
	return nil
}

// readStore is the store that the file names.
func readStore(dir string) (string, error) {
	path := filepath.Join(dir, storeFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if err := newerText(b, storeHeader); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	_, store, _ := strings.Cut(string(b), "\n")
	store, _, _ = strings.Cut(store, "\n")
	if string(b) != string(formatStore(store)) || !slices.Contains(LogStores, store) {
		return "", fmt.Errorf("%s: %w: header, lines or checksum are wrong", path, errStore)
	}
	return store, nil
}

// madeWith is the store that the directory was made with, "" if it was made with none
// yet. A file that is missing or damaged is no obstacle while there is one log: named is
// false then.
func madeWith(dir string) (store string, named bool, err error) {
	store, err = readStore(dir)
	if err == nil {
		return store, true, nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing && !errors.Is(err, errStore) {
		return "", false, err
	}
	bolt, wal := present(logPath(dir, StoreBolt)), present(logPath(dir, StoreWal))
	switch {
	case bolt && wal && !missing:
		return "", false, untrusted{fmt.Errorf("%w; %s and %s are both there, and it would say which of them is the log: put the file back, if there is a copy", err, logName, walName)}
	case bolt:
		return StoreBolt, false, nil
	case wal:
		return StoreWal, false, nil
	}
	return "", false, nil
}

// present says that there is something under a name.
func present(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// checkStore refuses a directory that was made with another store than the node shall
// use; none: whatever it was made with. It is done before anything else with the directory.
func checkStore(dir, want string) (made string, named bool, err error) {
	made, named, err = madeWith(dir)
	if err == nil && made != "" && want != "" && made != want {
		err = fmt.Errorf("data directory %[1]s was made with the log store %[2]q, and raft.log_store is %[3]q: take that line (or flag) away or set it to %[2]q, or convert the directory: `limitd migrate-log --data-dir %[1]s --to %[3]s`",
			dir, made, want)
	}
	return made, named, err
}

// createLog makes the log of a store, without entries.
func createLog(dir, store string) error {
	if store == StoreWal {
		return createWal(dir)
	}
	return createBolt(dir)
}

// openLogOf opens the log of a store and checks that it is whole.
func openLogOf(dir, store string, readOnly bool) (logFile, error) {
	path := logPath(dir, store)
	if store == StoreWal {
		w, err := openWal(path, readOnly)
		if err != nil {
			return nil, err
		}
		return w, nil
	}
	b, err := openLogFile(path, readOnly)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// noLog says that the log of a store is not there or holds nothing.
func noLog(dir, store string) bool {
	if store == StoreWal {
		return !present(logPath(dir, store))
	}
	return absent(logPath(dir, store))
}

// deleteStep is how many entries a store deletes at a time.
func deleteStep(store string) uint64 {
	if store == StoreWal {
		return 1 << 40 // all: it costs the same
	}
	return deleteChunk
}
