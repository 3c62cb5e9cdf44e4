package snapshot

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// SaveTo writes the stream of the newest snapshot to path and returns what it holds. The file is written beside, as path.tmp, synced,
// read again and verified before it gets its name, so that a file under that name is whole. One that is there already is replaced.
func (s *Store) SaveTo(path string) (Info, error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	info, err := s.saveTo(path)
	if err != nil {
		return Info{}, fmt.Errorf("save snapshot to %s: %w", path, err)
	}
	return info, nil
}

func (s *Store) saveTo(path string) (info Info, err error) {
	r, err := s.open()
	if err != nil {
		return info, err
	}
	defer r.Close()
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return info, err
	}
	defer func() {
		f.Close()
		if err != nil {
			_ = os.Remove(tmp)
		}
	}()
	steady := &steadily{f: f, s: s}
	if _, err = io.Copy(steady, r); err != nil {
		return info, err
	}
	Failpoint("save.written")
	if err = f.Sync(); err != nil {
		return info, err
	}
	Failpoint("save.synced")
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return info, err
	}
	if info, err = Inspect(steady); err != nil {
		return info, err
	}
	if written := r.enc.info(r.meta.Header); info != written {
		return info, damaged(tmp, "read back as %+v, written as %+v", info, written)
	}
	if err = s.disk.rename(tmp, path); err != nil {
		return info, err
	}
	Failpoint("save.renamed")
	return info, s.disk.syncDir(filepath.Dir(path))
}

// steadily is a file that is read and written in steps, so that whoever needs the processor or the disk waits for one of them at most.
type steadily struct {
	f        *os.File
	s        *Store
	unsynced int
}

func (x *steadily) Write(p []byte) (int, error) {
	n, err := x.f.Write(p)
	if x.unsynced += n; err == nil && x.unsynced >= x.s.steps.synced {
		x.unsynced = 0
		err = x.f.Sync()
	}
	x.s.moved()
	return n, err
}

func (x *steadily) Read(p []byte) (int, error) {
	x.s.moved()
	return x.f.Read(p)
}
