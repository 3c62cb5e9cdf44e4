package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
)

// A node's raft id is made with its data directory, so that a wiped disk comes
// back as a stranger: a voter that forgot what it acknowledged must not vote
// under the old name. It is kept in one file:
//
//	limitd-identity 1
//	n1-3f9a0c11
//	<CRC32C of the two lines, newlines included: 8 hex digits>
const (
	identityFile   = "identity"
	identityHeader = "limitd-identity 1"
	raftIDSuffix   = 1 + 8 // "-" and 8 hex digits
)

// errIdentity is for an identity file that cannot be believed.
var errIdentity = errors.New("damaged identity file")

// castagnoli is the CRC32C polynomial.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// loadIdentity reads the raft id of node id from dataDir, which exists, or makes
// one; fresh says that it did. What it returns is on disk.
//
// Call it after the log store was opened, or made because neither of the two was
// there. Then a crash at any point leaves a true state, and the caller refuses the
// others: a log that holds entries and no identity, which was lost; and an identity
// and no log, which was lost, and with it what was acknowledged.
func loadIdentity(dataDir, id string) (raftID string, fresh bool, err error) {
	if id == "" || checkRaftID(id+"-00000000") != nil {
		return "", false, fmt.Errorf("node id %.40q: it takes 1 to %d printable ASCII characters without spaces", id, maxRaftID-raftIDSuffix)
	}
	path := filepath.Join(dataDir, identityFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		raftID = newRaftID(id)
		return raftID, true, writeIdentity(path, raftID)
	}
	if err != nil {
		return "", false, fmt.Errorf("read identity: %w", err)
	}
	raftID, err = parseIdentity(b)
	if errors.Is(err, ErrVersion) {
		return "", false, fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return "", false, fmt.Errorf("%s: %w: put the right file back, if there is one", path, err)
	}
	if got := nodeID(raftID); got != id {
		return "", false, fmt.Errorf("data directory %s belongs to node %q (raft id %s), this is node %q: correct the data directory or the node id in the configuration", dataDir, got, raftID, id)
	}
	return raftID, false, nil
}

// newRaftID makes a raft id for node id.
func newRaftID(id string) string {
	var random [4]byte
	rand.Read(random[:])
	return id + "-" + hex.EncodeToString(random[:])
}

// nodeID is the part of a raft id that the configuration knows; "" if it is none.
func nodeID(raftID string) string {
	n := len(raftID) - raftIDSuffix
	if n < 1 || raftID[n] != '-' || strings.Trim(raftID[n+1:], "0123456789abcdef") != "" {
		return ""
	}
	return raftID[:n]
}

func formatIdentity(raftID string) []byte {
	s := identityHeader + "\n" + raftID + "\n"
	return fmt.Appendf(nil, "%s%08x\n", s, crc32.Checksum([]byte(s), castagnoli))
}

func parseIdentity(b []byte) (raftID string, err error) {
	_, rest, _ := strings.Cut(string(b), "\n")
	raftID, _, _ = strings.Cut(rest, "\n")
	switch err := newerText(b, identityHeader); {
	case err != nil:
		return "", err
	case string(b) != string(formatIdentity(raftID)):
		return "", fmt.Errorf("%w: header, lines or checksum are wrong", errIdentity)
	case nodeID(raftID) == "" || checkRaftID(raftID) != nil:
		return "", fmt.Errorf("%w: %.40q is no raft id", errIdentity, raftID)
	}
	return raftID, nil
}

func writeIdentity(path, raftID string) error {
	if err := writeWhole(path, formatIdentity(raftID)); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

// writeWhole puts a small file in place so that it is there whole or not at all.
func writeWhole(path string, b []byte) error {
	tmp := path + ".tmp"
	if err := writeSynced(tmp, b); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
