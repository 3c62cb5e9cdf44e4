package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// The version is looked at before anything else is believed: with any content behind it, and whatever length that has. Only a checksum
// that stands at the end of every version comes first, so that damage is not called news.
func TestUnknownVersionIsToldWhateverElseIsThere(t *testing.T) {
	sealed := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)) }
	meta := func(b []byte) error { _, err := decodeMeta("the file", sealed(b)); return err }
	receipt := func(b []byte) error { _, err := decodeReceipt("the file", sealed(b)); return err }
	streams := func(b []byte) error {
		_, err := Inspect(bytes.NewReader(append([]byte(streamMagic), b...)))
		return err
	}
	for _, format := range []struct {
		name   string
		newest byte
		read   func([]byte) error
	}{{"meta data", Reads, meta}, {"receipt", receiptVersion, receipt}, {"snapshot stream", Reads, streams}} {
		for version := range 256 {
			if version >= 1 && version <= int(format.newest) {
				continue
			}
			for _, length := range []int{0, 1, 3, metaFixed, 300} {
				b := make([]byte, 1+length)
				for i := range b {
					b[i] = byte(rand.Uint32())
				}
				b[0] = byte(version)
				err := format.read(b)
				want := fmt.Sprintf("unknown format version %d, this limitd reads versions up to %d", version, format.newest)
				if !errors.Is(err, ErrVersion) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), format.name) {
					t.Fatalf("%s of version %d, %d bytes behind it: %v", format.name, version, length, err)
				}
			}
		}
	}
	for name, read := range map[string]func([]byte) error{
		"meta data": func(b []byte) error { _, err := decodeMeta("the file", b); return err },
		"receipt":   func(b []byte) error { _, err := decodeReceipt("the file", b); return err },
	} {
		b := sealed(append([]byte{Reads + 1}, make([]byte, 200)...))
		b[50] ^= 1
		if err := read(b); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) {
			t.Errorf("%s that are damaged: %v", name, err)
		}
	}
}

// A stream has the version that it was asked for, which another node may need; it is as long as was announced, and it is read again.
func TestStreamIsWrittenInTheVersionAskedFor(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 5, 100, someRecords()...)
	_, first := stream(t, s)
	for version := uint8(1); version <= Reads; version++ {
		r, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		size, err := r.WriteVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil || int64(len(b)) != size || b[len(streamMagic)] != version {
			t.Fatalf("version %d: %d bytes, announced %d, first bytes %x, %v", version, len(b), size, b[:8], err)
		}
		_, got, err := read(bytes.NewReader(b))
		_, want, _ := read(bytes.NewReader(first))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("version %d is read as %v, %v", version, got, err)
		}
		if _, err := r.WriteVersion(1); err == nil {
			t.Error("the version changed after the stream")
		}
		r.Close()
	}
	for _, version := range []uint8{0, Reads + 1} {
		r, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.WriteVersion(version); err == nil {
			t.Errorf("version %d can be written and not read", version)
		}
		r.Close()
	}
}

// What the store writes without being asked, a saved stream and the meta data of its file, has the version of Options.Writes.
func TestFileAndStreamHaveTheVersionOfTheOptions(t *testing.T) {
	version := uint8(0)
	dir := t.TempDir()
	s := openTest(t, dir, Options{Writes: func() uint8 { return version }})
	for version = uint8(0); version <= Reads; version++ {
		commit(t, s, uint64(10+2*version), 100, rec("a", fmt.Sprint(version), 200))
		want := max(version, 1)
		if got := metaVersionOf(t, s); got != want {
			t.Errorf("a snapshot at version %d has meta data of version %d", version, got)
		}
		m, b := stream(t, s)
		if got := b[len(streamMagic)]; got != want {
			t.Errorf("a stream at version %d has version %d", version, got)
		}
		m.Index++
		if err := send(t, s, m, b); err != nil {
			t.Fatal(err)
		}
		if got := metaVersionOf(t, s); got != want {
			t.Errorf("an install at version %d has meta data of version %d", version, got)
		}
	}
	s.Close()
	s = openTest(t, dir, Options{})
	expect(t, contents(t, s), rec("a", fmt.Sprint(Reads), 200))
}

func metaVersionOf(t *testing.T, s *Store) (version uint8) {
	t.Helper()
	if err := s.cur.db.View(func(tx *bolt.Tx) error {
		version = tx.Bucket(bucketMeta).Get(keyMeta)[0]
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return version
}

// The golden stream under every version that is read: a release that learns a new version goes on reading those before it.
func TestEveryVersionReadsTheGoldenStream(t *testing.T) {
	b := write(t, testHeader, golden...)
	for version := byte(1); version <= Reads; version++ {
		b[len(streamMagic)] = version
		body := b[:len(b)-4]
		b = binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
		if h, records, err := read(bytes.NewReader(b)); err != nil || h != testHeader || fmt.Sprint(records) != fmt.Sprint(golden) {
			t.Errorf("version %d: %v %v %v", version, h, records, err)
		}
	}
}

// An install of an unknown version is not called damaged, leaves the file, and says so to whoever copies it: at a write if it is long, at
// the end if all of it fits into one.
func TestInstallOfAnUnknownVersionLeavesTheFile(t *testing.T) {
	for name, records := range map[string][]Record{"short": {rec("a", "9", 200)}, "long": {rec("a", strings.Repeat("9", 1<<20), 200)}} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, t.TempDir(), Options{})
			commit(t, s, 5, 100, rec("a", "5", 200))
			m, b := donor(t, 9, records...)
			b[len(streamMagic)] = Reads + 1
			if err := send(t, s, m, b); !errors.Is(err, ErrVersion) || errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			noLeftovers(t, s)
			expect(t, contents(t, s), rec("a", "5", 200))
		})
	}
}
