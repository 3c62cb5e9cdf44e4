package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// copyImage copies a data directory that is in use, as it is at one moment: what a
// killed process leaves. A file of bbolt is changed in place only where its last
// transaction does not reach, and a segment of the log grows at its end, so the image
// is of one moment if no file has another name, no bbolt file another transaction at
// its head, and no segment more in it, at the end of the copying than at its beginning.
// Else it is made again.
func copyImage(from, to string) error {
	for range 1000 {
		before, err := heads(from)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		err = nil
		for name := range before {
			target := filepath.Join(to, name)
			err = errors.Join(err, os.MkdirAll(filepath.Dir(target), 0o700), copyFile(filepath.Join(from, name), target))
		}
		after, headErr := heads(from)
		if err == nil && headErr == nil && sameHeads(before, after) {
			return nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("%s changes all the time", from)
}

// head of a file: which file it is, and its first pages: the meta pages of a bbolt
// file, the whole of a small one, all that was written of a segment.
type head struct {
	inode uint64
	bytes []byte
}

const headSize = 8 << 10

// heads of the files of a directory and those in it, by their paths there.
func heads(dir string) (map[string]head, error) {
	all := map[string]head{}
	return all, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil || e.IsDir() || e.Name() == spare {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		var b []byte
		if filepath.Ext(path) == segment {
			b, err = written(f)
		} else {
			b, err = io.ReadAll(io.LimitReader(f, headSize))
		}
		st, statErr := f.Stat()
		if err := errors.Join(err, statErr); err != nil {
			return err
		}
		all[name] = head{st.Sys().(*syscall.Stat_t).Ino, b}
		return nil
	})
}

const (
	segment = ".wal"  // of the log: made in its length, and written from its beginning on
	spare   = "spare" // zeros, for the next segment: a start removes it
)

// written is what a segment has before the first page of zeros.
func written(f io.ReaderAt) (b []byte, err error) {
	var page [headSize]byte
	for {
		n, err := f.ReadAt(page[:], int64(len(b)))
		if n == 0 || len(bytes.Trim(page[:n], "\x00")) == 0 {
			if err == io.EOF {
				err = nil
			}
			return b, err
		}
		b = append(b, page[:n]...)
		if err != nil && err != io.EOF {
			return nil, err
		}
	}
}

func sameHeads(a, b map[string]head) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || x.inode != y.inode || !bytes.Equal(x.bytes, y.bytes) {
			return false
		}
	}
	return true
}

// copyFile copies a file and keeps its holes: bbolt makes files much longer than what
// is in them.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if err := out.Truncate(st.Size()); err != nil {
		return err
	}
	if filepath.Ext(from) == segment { // no holes: it was filled with zeros
		b, err := written(in)
		if err == nil {
			_, err = out.WriteAt(b, 0)
		}
		return err
	}
	const seekData, seekHole = 3, 4
	for at := int64(0); at < st.Size(); {
		begin, err := in.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) {
			return nil // a hole up to the end
		}
		if err != nil {
			return err
		}
		end, err := in.Seek(begin, seekHole)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, begin), io.NewSectionReader(in, begin, end-begin)); err != nil {
			return err
		}
		at = end
	}
	return nil
}
