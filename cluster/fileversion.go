package cluster

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// The small text files of the data directory (identity, joining, unfinished) have one
// form:
//
//	limitd-<what> <version>
//	<content, one line>
//	<CRC32C of both lines, newlines included: 8 hex digits>

// newerText is an [ErrVersion] if b begins with another version than header does, which
// is looked at before anything else. What has the right checksum under header is a file
// of ours whose first line is damaged.
func newerText(b []byte, header string) error {
	first, rest, _ := strings.Cut(string(b), "\n")
	version, ok := strings.CutPrefix(first, header[:strings.LastIndexByte(header, ' ')+1])
	if _, err := strconv.ParseUint(version, 10, 32); !ok || err != nil || first == header {
		return nil
	}
	if n := len(rest) - 9; n >= 0 && rest[n:] == fmt.Sprintf("%08x\n", crc32.Checksum([]byte(header+"\n"+rest[:n]), castagnoli)) {
		return nil
	}
	return fmt.Errorf("%w: it begins with %.40q, this limitd reads %q", ErrVersion, first, header)
}

// newerRow says that a row or value of the raft log, whose first byte is its version,
// has another one than ours. valid says that all the rest is as in our version: then
// that byte is damaged.
func newerRow(row []byte, valid bool) bool {
	return len(row) > 0 && row[0] != rowVersion && row[0] != 0 && !valid
}

func unknownRow(what string, version byte) error {
	return fmt.Errorf("%w: %s has the format %d, this limitd reads %d", ErrVersion, what, version, rowVersion)
}
