package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// sealedText is a small text file of any content with a right checksum.
func sealedText(header, content string) []byte {
	s := header + "\n" + content
	return fmt.Appendf(nil, "%s%08x\n", s, crc32.Checksum([]byte(s), castagnoli))
}

// Whatever a newer limitd puts behind the version of a file, a row or a message, this
// one says that it does not read it, and not that it is damaged; and it does not act on
// anything of it.
func TestVersionIsLookedAtBeforeAnythingElse(t *testing.T) {
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		return b
	}
	behind := func(version byte, n int) []byte { return append([]byte{version}, noise(n)...) }
	hello := func(version byte, n int) []byte {
		b := binary.BigEndian.AppendUint16(append([]byte(peerMagic), version, 77), uint16(n))
		return append(b, noise(n)...)
	}
	for name, newest := range map[string]struct {
		version uint8
		read    func(version byte, n int) error // what reads version with n bytes behind it says
	}{
		"row of the log": {rowVersion, func(v byte, n int) error {
			return decodeRow(5, behind(v, n), &raft.Log{})
		}},
		"value of the stable store": {rowVersion, func(v byte, n int) error { _, err := openValue([]byte("CurrentTerm"), behind(v, n)); return err }},
		"note":                      {noteVersion, func(v byte, n int) error { _, err := decodeNote(behind(v, n)); return err }},
		"identity": {1, func(v byte, n int) error {
			_, err := parseIdentity(sealedText(fmt.Sprintf("limitd-identity %d", v), string(noise(n))))
			return err
		}},
		"joining": {1, func(v byte, n int) error {
			_, err := parseJoining(sealedText(fmt.Sprintf("limitd-joining %d", v), string(noise(n))))
			return err
		}},
		"unfinished": {1, func(v byte, n int) error {
			_, err := parseReplacement(sealedText(fmt.Sprintf("limitd-unfinished %d", v), string(noise(n))))
			return err
		}},
		"hello": {peerVersion, func(v byte, n int) error {
			h, err := readHello(bytes.NewReader(hello(v, n)))
			if err == nil && h.version == v && h.raftID == "" {
				err = ErrVersion // the handshake answers with a refusal that says so
			}
			return err
		}},
		"answer": {peerVersion, func(v byte, n int) error {
			a, err := readAnswer(bytes.NewReader(hello(v, n)))
			if err == nil && a.version == v && a.raftID == "" {
				err = ErrVersion
			}
			return err
		}},
	} {
		for version := byte(1); version != 0; version++ {
			if version <= newest.version && name != "hello" && name != "answer" || version == newest.version {
				continue
			}
			for _, n := range []int{0, 1, 4, 9, 40, 900} {
				if err := newest.read(version, n); !errors.Is(err, ErrVersion) {
					t.Fatalf("%s of version %d with %d bytes: %v", name, version, n, err)
				}
			}
		}
	}
}

// A version that was damaged, with all the rest as it was written, is damage: a newer
// limitd would not help.
func TestDamagedVersionIsDamage(t *testing.T) {
	l := raft.Log{Index: 5, Term: 2, Data: []byte("data")}
	row := appendRow(nil, &l)
	value := sealValue([]byte("CurrentTerm"), []byte("12345678"))
	for bit := range 8 {
		for name, err := range map[string]error{
			"row": decodeRow(5, append([]byte{row[0] ^ 1<<bit}, row[1:]...), &raft.Log{}),
			"value": func() error {
				_, err := openValue([]byte("CurrentTerm"), append([]byte{value[0] ^ 1<<bit}, value[1:]...))
				return err
			}(),
			"identity": func() error {
				_, err := parseIdentity(bytes.Replace(formatIdentity("n1-3f9a0c11"), []byte(" 1\n"), []byte{' ', '1' ^ 1<<bit, '\n'}, 1))
				return err
			}(),
			"joining": func() error {
				_, err := parseJoining(bytes.Replace(formatJoining(joinsAsVoter), []byte(" 1\n"), []byte{' ', '1' ^ 1<<bit, '\n'}, 1))
				return err
			}(),
		} {
			if err == nil || errors.Is(err, ErrVersion) {
				t.Errorf("bit %d of the version of the %s: %v", bit, name, err)
			}
		}
	}
}

// A node does not start with a file of a newer limitd, says which, and leaves it alone:
// what mends damage would destroy what is whole.
func TestNodeLeavesTheFilesOfANewerLimitdAlone(t *testing.T) {
	t.Parallel()
	for file, content := range map[string][]byte{
		identityFile:    sealedText("limitd-identity 2", "n1\n3f9a0c11\n"),
		joiningFile:     sealedText("limitd-joining 2", "witness\n"),
		replacementFile: sealedText("limitd-unfinished 2", "moved\n"),
	} {
		t.Run(file, func(t *testing.T) {
			c := startTestCluster(t, 1)
			tn := c.leader()
			if err := tn.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(tn.cfg.DataDir, file)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			n, err := Open(tn.cfg, nil)
			if err == nil {
				n.Close()
			}
			wantNewer(t, err, path)
			if err != nil && (strings.Contains(err.Error(), "mv ") || strings.Contains(err.Error(), "damaged")) {
				t.Errorf("it is called damaged: %v", err)
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, content) {
				t.Errorf("the file is now %q", now)
			}
		})
	}
}
