package fsm

import (
	"errors"
	"fmt"
)

// ReadsEntry is the newest version of the entry that this limitd reads. It reads
// all from 1 on, and a leader writes the newest that every member reads
// ([Turn].Version), so that nodes of two releases can be in one cluster.
const ReadsEntry = newestEntry

// VersionCut is the first version of the entry that has [Effect].Cut. A batch may
// cut only if its [Turn].Version is this or above: else a member would halt at it.
const VersionCut = 2

// ErrVersion is for an entry that is whole and that this limitd does not read.
var ErrVersion = errors.New("unknown entry version")

// CheckVersion returns an error that wraps [ErrVersion], and says what to do, if
// data is an entry that a newer limitd wrote. It looks at the version, and at the
// checksum only if the version is unknown: a damaged entry is not its business.
func CheckVersion(data []byte) error {
	if len(data) == 0 || readable(data[0]) {
		return nil
	}
	if _, err := openEntry(data); errors.Is(err, ErrVersion) {
		return err
	}
	return nil
}

func readable(version byte) bool { return version >= 1 && version <= ReadsEntry }

func unknownVersion(version byte) error {
	return fmt.Errorf("%w %d, this limitd reads versions up to %d: a newer one wrote the entry; start this node with the limitd that the other nodes run",
		ErrVersion, version, ReadsEntry)
}
