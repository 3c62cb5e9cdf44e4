package snapshot

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// runs are the portions of a local snapshot that is too large for the memory, each in name order, until they are merged into the new
// file. They are in a file that has lost its name as soon as it was made: a crash leaves nothing of it, and nothing needs a sync.
//
// A record is length of the name(2) length of the value(4) name value. The value is as in the snapshot file; that of a deletion is the
// CRC32C of the name alone.
type runs struct {
	path    string // that it had
	f       *os.File
	ends    []int64 // where each run ends, in the file
	records uint64
}

const (
	runsName = "snapshot.runs"

	runHead   = 2 + 4
	runDelete = 4        // length of the value of a deletion
	runBuffer = 64 << 10 // bytes read of a run at a time, and written
)

func newRuns(dir string) (*runs, error) {
	path := filepath.Join(dir, runsName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		f.Close()
		return nil, err
	}
	return &runs{path: path, f: f}, nil
}

func (r *runs) end() int64 {
	if len(r.ends) == 0 {
		return 0
	}
	return r.ends[len(r.ends)-1]
}

// add writes a run. The names of its records must ascend. After an error the run is not there.
func (r *runs) add(records []Record, moved func()) error {
	w := bufio.NewWriterSize(io.NewOffsetWriter(r.f, r.end()), runBuffer)
	var b, prev []byte
	size := int64(0)
	for i := range records {
		x := &records[i]
		switch {
		case i > 0 && bytes.Compare(prev, x.Name) >= 0:
			return fmt.Errorf("%s is out of order", describe(x.Name))
		case x.Deleted && len(x.Name) <= 1:
		default:
			if err := checkRecord(x.Name, x.State); err != nil {
				return err
			}
		}
		prev = x.Name
		b = appendRun(b[:0], x)
		size += int64(len(b))
		if _, err := w.Write(b); err != nil {
			return r.failed("write", err)
		}
		if i%1024 == 0 {
			moved()
		}
	}
	if err := w.Flush(); err != nil {
		return r.failed("write", err)
	}
	r.ends = append(r.ends, r.end()+size)
	r.records += uint64(len(records))
	return nil
}

func (r *runs) failed(what string, err error) error {
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s %s: %w", what, r.path, err)
}

func appendRun(dst []byte, x *Record) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = le.AppendUint16(dst, uint16(len(x.Name)))
	dst = le.AppendUint32(dst, 0)
	dst = append(dst, x.Name...)
	if x.Deleted {
		dst = le.AppendUint32(dst, crc32.Checksum(x.Name, castagnoli))
	} else {
		dst, _ = appendValue(dst, x.Name, x.State, x.Expiry)
	}
	le.PutUint32(dst[start+2:], uint32(len(dst)-start-runHead-len(x.Name)))
	return dst
}

// run reads one of the runs. Its record is valid until the next call of next.
type run struct {
	of   *runs
	age  int // its number: of two records with one name, that of the younger run counts
	r    *bufio.Reader
	left int64 // bytes of it not yet read

	entry
	deleted bool
	head    [runHead]byte
	buf     []byte
}

func (r *runs) open(i int) *run {
	start := int64(0)
	if i > 0 {
		start = r.ends[i-1]
	}
	n := r.ends[i] - start
	return &run{of: r, age: i, r: bufio.NewReaderSize(io.NewSectionReader(r.f, start, n), runBuffer), left: n}
}

// next reads and checks the next record; io.EOF at the end of the run.
func (x *run) next() error {
	if x.left == 0 {
		x.entry = entry{}
		return io.EOF
	}
	if _, err := io.ReadFull(x.r, x.head[:]); err != nil {
		return x.of.failed("read", err)
	}
	le := binary.LittleEndian
	name, size := int(le.Uint16(x.head[:])), int(le.Uint32(x.head[2:]))
	n := name + size
	if x.left -= int64(runHead + n); x.left < 0 {
		return damaged(x.of.path, "a record ends behind its run")
	}
	if n > cap(x.buf) {
		x.buf = make([]byte, n+n/2)
	}
	x.buf = x.buf[:n]
	if _, err := io.ReadFull(x.r, x.buf); err != nil {
		return x.of.failed("read", err)
	}
	x.name, x.raw, x.value = x.buf[:name:name], x.buf[name:], value{}
	if x.deleted = size == runDelete; x.deleted {
		if le.Uint32(x.raw) != crc32.Checksum(x.name, castagnoli) {
			return damagedRecord(x.of.path, x.name)
		}
		return nil
	}
	var ok bool
	if x.value, ok = decodeValue(x.name, x.raw); !ok {
		return damagedRecord(x.of.path, x.name)
	}
	return nil
}

// names calls fn with the name of each record of all runs.
func (r *runs) names(fn func(name []byte) error) error {
	for i := range r.ends {
		x := r.open(i)
		for {
			err := x.next()
			if err == io.EOF {
				break
			}
			if err == nil {
				err = fn(x.name)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
