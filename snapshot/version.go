package snapshot

import "fmt"

// Reads is the newest version of the stream, and of the meta data of the file, that this limitd reads; the two change together. It reads
// all from 1 on, and writes the one that it is told to ([Options].Writes, [Reader.WriteVersion]), so that nodes of two releases can be in
// one cluster.
const Reads = newestVersion

func readable(version byte) bool { return version >= 1 && version <= Reads }

// unknown is the error for a version that is not readable of what: a file or a part of one.
func unknown(what string, version byte, reads int) error {
	return fmt.Errorf("%s: %w %d, this limitd reads versions up to %d: a newer one wrote it, use that one", what, ErrVersion, version, reads)
}

// version is the version to write in.
func (s *Store) version() uint8 {
	if fn := s.options().Writes; fn != nil {
		return max(fn(), 1)
	}
	return 1
}

// WriteVersion sets the version of the stream that Read gives, at most Reads, and returns the stream's length in bytes. It must come
// before the first Read; without it the version is that of Options.Writes.
func (r *Reader) WriteVersion(version uint8) (size int64, err error) {
	if err := r.enter(streaming); err != nil {
		return 0, err
	}
	defer r.mu.Unlock()
	if !readable(version) || r.enc.begun {
		return 0, fmt.Errorf("read snapshot %s: no stream of version %d can be written, or it is begun", r.meta.id(), version)
	}
	r.enc.version = version
	return r.size, nil
}
