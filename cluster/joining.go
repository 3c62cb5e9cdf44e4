package cluster

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// A node that waits to be taken in keeps in one file that it does, and whether it
// wants a vote. It never founds a cluster then, and it asks for its vote itself
// once it is a member, whoever leads:
//
//	limitd-joining 1
//	voter
//	<CRC32C of the two lines, newlines included: 8 hex digits>
//
// The file goes when the node has its vote. So a member that is demoted stays so.
const (
	joiningFile   = "joining"
	joiningHeader = "limitd-joining 1"
)

// joinIntent is what a node that joins wants to be.
type joinIntent string

const (
	joinsNot        joinIntent = ""
	joinsAsVoter    joinIntent = "voter"
	joinsAsNonVoter joinIntent = "nonvoter"
)

func intentOf(nonVoter bool) joinIntent {
	if nonVoter {
		return joinsAsNonVoter
	}
	return joinsAsVoter
}

// joining is a node's intent, and what it heard while it waits.
type joining struct {
	path   string
	intent atomic.Value            // joinIntent, as on disk: read without waiting for it
	into   atomic.Pointer[lineage] // of who invited it; nil: nobody since the start

	mu       sync.Mutex // also held while the disk is written
	founding bool       // it is founding a cluster and cannot join another one any more
	leader   string     // peer address of who invited it
}

// errJoining is for a joining file that cannot be believed.
var errJoining = errors.New("damaged file")

// load reads the file of dataDir, if there is one.
func (j *joining) load(dataDir string) error {
	j.path = filepath.Join(dataDir, joiningFile)
	b, err := os.ReadFile(j.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read intent to join: %w", err)
	}
	intent, err := parseJoining(b)
	if errors.Is(err, ErrVersion) {
		return fmt.Errorf("%s: %w", j.path, err)
	} else if err != nil {
		return fmt.Errorf("%s: %w. Remove the file; if the data directory holds no log yet, start the node with --join", j.path, err)
	}
	j.intent.Store(intent)
	return nil
}

// wants is the intent. It does not wait for the disk: it is asked for by each status.
func (j *joining) wants() joinIntent {
	i, _ := j.intent.Load().(joinIntent)
	return i
}

// state is what the bootstrap asks for.
func (j *joining) state() (joins bool, leader string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wants() != joinsNot, j.leader
}

// set puts the intent on disk; joinsNot removes the file.
func (j *joining) set(want joinIntent) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.setLocked(want)
}

func (j *joining) setLocked(want joinIntent) (err error) {
	if j.founding && want != joinsNot {
		return errors.New("it is founding a cluster")
	}
	if want == j.wants() {
		return nil
	}
	if want == joinsNot {
		if err = os.Remove(j.path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	} else {
		tmp := j.path + ".tmp"
		if err = writeSynced(tmp, formatJoining(want)); err == nil {
			err = os.Rename(tmp, j.path)
		}
	}
	if err == nil {
		err = syncDir(filepath.Dir(j.path))
	}
	if err != nil {
		return fmt.Errorf("keep intent to join: %w", err)
	}
	j.intent.Store(want)
	return nil
}

// found says whether the node may found a cluster; after true it does not join one.
func (j *joining) found() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.founding = j.wants() == joinsNot
	return j.founding
}

func formatJoining(i joinIntent) []byte {
	s := joiningHeader + "\n" + string(i) + "\n"
	return fmt.Appendf(nil, "%s%08x\n", s, crc32.Checksum([]byte(s), castagnoli))
}

func parseJoining(b []byte) (joinIntent, error) {
	if err := newerText(b, joiningHeader); err != nil {
		return "", err
	}
	for _, i := range []joinIntent{joinsAsVoter, joinsAsNonVoter} {
		if string(b) == string(formatJoining(i)) {
			return i, nil
		}
	}
	return "", fmt.Errorf("%w: header, line or checksum are wrong", errJoining)
}
