package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// copyImage copies a data directory that is in use, as it is at one moment: what a
// killed process leaves. A file of bbolt is changed in place only where its last
// transaction does not reach, so the image is of one moment if no file has another
// name, and no other transaction at its head, at the end of the copying than at its
// beginning. Else it is made again.
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
			err = errors.Join(err, copyFile(filepath.Join(from, name), filepath.Join(to, name)))
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
// file, the whole of a small one.
type head struct {
	inode uint64
	bytes []byte
}

const headSize = 8 << 10

// heads of the files of a directory, by name.
func heads(dir string) (map[string]head, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]head{}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(f, headSize))
		st, statErr := f.Stat()
		f.Close()
		if err := errors.Join(err, statErr); err != nil {
			return nil, err
		}
		all[e.Name()] = head{st.Sys().(*syscall.Stat_t).Ino, b}
	}
	return all, nil
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
