package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// errNotTorn is for what follows the last whole batch of a segment and is no part of
// a batch that was being written when the machine failed.
var errNotTorn = errors.New("it is not what an interrupted write leaves")

const sector = 512 // a disk writes so much, or leaves it as it was

// written is behind the last byte that is not zero.
func written(b []byte) int64 {
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return int64(n)
}

// interrupted wants what is between from and to to be a part of one batch that never
// reached the disk as a whole, and so was never acknowledged. The file was zeros there
// before, and is zeros behind to. What was whole once is damaged, and acknowledged
// most likely.
//
// Some sectors of an interrupted batch are still zeros: one in its midst, or all from
// one on. A batch whose last frame is there, without a sector of zeros, was written as
// a whole; so was each before another one. And a row that is left knows its index: if that
// is further from last, the entry before, than a batch is long, others were between.
func interrupted(b []byte, from, to int64, last uint64) error {
	if to <= from {
		return nil
	}
	err := fmt.Errorf("what follows byte %d is damaged: %w", from, errNotTorn)
	left := b[:min((to+7)&^7, int64(len(b)))]
	if wholeBatch(left, from) || farRow(left, from, last) {
		return err
	}
	for at := from; at < to; {
		next := min((at/sector+1)*sector, int64(len(b)))
		if written(b[at:next]) == 0 {
			return nil
		}
		at = next
	}
	if isCommit(b, (to-1)&^7) {
		return err
	}
	return endsEarly(b, from, min((to+sector-1)/sector*sector, int64(len(b))), err)
}

// wholeBatch says that a whole batch follows the damage.
func wholeBatch(b []byte, from int64) bool {
	begin := int64(-1)
	for at := from; at+walFrame <= int64(len(b)); at += walFrame {
		if !isCommit(b, at) {
			continue
		}
		if begin >= 0 && at > begin && crc32.Checksum(b[begin:at], castagnoli) == binary.LittleEndian.Uint32(b[at+4:]) {
			return true
		}
		begin = at + walFrame
	}
	return false
}

// maxStored is how many entries raft gives at once, and some more.
const maxStored = 2 * maxAppend

// mostWork is how many bytes are summed up to find the index of a row.
const mostWork = 64 << 20

// farRow says that there is a row of an entry that cannot be of the batch after last.
func farRow(b []byte, from int64, last uint64) bool {
	work := mostWork
	for at := (from + 7) &^ 7; at+walFrame+rowFixed <= int64(len(b)) && work > 0; at += walFrame {
		n, body := int64(binary.LittleEndian.Uint32(b[at+4:])), at+walFrame
		if binary.LittleEndian.Uint32(b[at:]) != frameEntry || n < rowFixed || body+n > int64(len(b)) || b[body] != rowVersion {
			continue
		}
		row := b[body : body+n]
		most := last + uint64((at-from)/(walFrame+rowFixed)) + 1 // so many rows fit before it
		for i := last + 1; i <= most && work > 0; i++ {
			var l raft.Log
			if work -= len(row); decodeRow(i, row, &l) == nil && i > last+maxStored {
				return true
			}
		}
	}
	return false
}

func isCommit(b []byte, at int64) bool {
	return at+walFrame <= int64(len(b)) && binary.LittleEndian.Uint32(b[at:]) == frameCommit
}

// endsEarly wants frames that go on behind the last sector that was written.
func endsEarly(b []byte, from, end int64, err error) error {
	at := from
	if at == 0 {
		at = walHeader
	}
	for at+walFrame <= end {
		n, body := int64(binary.LittleEndian.Uint32(b[at+4:])), at+walFrame
		switch first := b[body:end]; b[at] {
		case frameEntry:
			if len(first) > 0 && first[0] != rowVersion {
				return err
			}
		case frameIndex:
			if len(first) >= 4 && binary.LittleEndian.Uint32(first) != walHeader {
				return err
			}
		default:
			return err
		}
		at = body + padded(n)
	}
	return nil
}
