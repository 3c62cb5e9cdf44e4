package fsm

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The version is looked at before anything else of an entry is believed, lengths
// included; only the checksum comes first, so that damage is not called news.
func TestUnknownVersionIsToldWhateverElseTheEntryHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.Byte().Filter(func(v byte) bool { return v == 0 || v > ReadsEntry }).Draw(t, "version")
		data := append([]byte{version}, rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "rest")...)
		want := fmt.Sprintf("unknown entry version %d, this limitd reads versions up to %d", version, ReadsEntry)
		for name, read := range map[string]func([]byte) error{
			"parseEntry":   func(b []byte) error { _, err := parseEntry(b); return err },
			"CheckVersion": CheckVersion,
		} {
			if err := read(seal(data)); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), want) {
				t.Fatalf("%s of version %d: %v", name, version, err)
			}
		}
		if at, ok := EntryTime(seal(data)); ok {
			t.Fatalf("the time of an entry of version %d is %d", version, at)
		}
		bad := seal(data)
		bad[rapid.IntRange(1, len(bad)-1).Draw(t, "damage at")] ^= 0x10
		if err := CheckVersion(bad); err != nil {
			t.Fatalf("CheckVersion of a damaged entry: %v", err)
		}
		if _, err := parseEntry(bad); !errors.Is(err, errDamaged) {
			t.Fatalf("a damaged entry: %v", err)
		}
	})
	for _, data := range [][]byte{nil, {}, {9}, {9, 1, 2, 3}} {
		if err := CheckVersion(data); err != nil {
			t.Errorf("CheckVersion of %x: %v", data, err)
		}
	}
}

// An entry has the version that its turn asks for, and is read again under it.
func TestEntryIsWrittenInTheVersionOfItsTurn(t *testing.T) {
	plain := AppendEntry(nil, Turn{Base: 1}, goldenEffects)
	for version := uint8(1); version <= ReadsEntry; version++ {
		turn := goldenTurn
		turn.Version = version
		data := AppendEntry(nil, turn, goldenEffects)
		got, effects, err := decodeAll(data)
		if err != nil || data[0] != version || got != turn || !same(effects, goldenEffects) || CheckVersion(data) != nil {
			t.Errorf("version %d: %v %+v", version, err, got)
		}
		if at, ok := EntryTime(data); !ok || at != turn.At {
			t.Errorf("version %d: EntryTime is %d, %v", version, at, ok)
		}
	}
	if plain[0] != 1 {
		t.Errorf("a turn without a version makes an entry of version %d", plain[0])
	}
	defer func() {
		if recover() == nil {
			t.Error("an entry that this limitd does not read was written")
		}
	}()
	AppendEntry(nil, Turn{Version: ReadsEntry + 1}, nil)
}

// A version only adds to the one before: the body of a golden entry means the same
// in every later one, and in none before it, or that would have needed no number.
// The next version of the tests is the newest one under another number.
func TestEveryVersionReadsTheGoldenEntries(t *testing.T) {
	for i, g := range goldens {
		golden := goldenHex(t, g.path)
		if golden[0] != byte(i+1) {
			t.Fatalf("%s is of version %d", g.path, golden[0])
		}
		for version := byte(1); version <= ReadsEntry; version++ {
			data := seal(append([]byte{version}, golden[1:len(golden)-entryTrailer]...))
			turn, effects, err := decodeAll(data)
			if version < golden[0] {
				if !errors.Is(err, errDamaged) {
					t.Errorf("%s as of version %d: %v", g.path, version, err)
				}
				continue
			}
			want := goldenTurn
			want.Version = version
			if err != nil || turn != want || !same(effects, g.effects) {
				t.Errorf("%s as of version %d: %v\n%+v\n%+v", g.path, version, err, turn, effects)
			}
		}
	}
}

// Every op and every flag that a version has is in its golden entry, or the golden
// file says nothing about it.
func TestGoldenEntriesHaveEveryOpAndFlag(t *testing.T) {
	for version := byte(1); version <= ReadsEntry; version++ {
		g := goldens[min(int(version), len(goldens))-1] // the next version of the tests has none of its own
		seen := map[byte]bool{}
		e, err := parseEntry(goldenHex(t, g.path))
		if err != nil {
			t.Fatal(err)
		}
		for d := e.effects(0); len(d.rest) > 0; {
			seen[d.rest[0]] = true
			d.mustNext()
		}
		for tag := range 256 {
			probe := decoder{rest: append([]byte{byte(tag), 1, 1, 1, 1, 1, 1, 1}, make([]byte, 32)...), version: version}
			if known := probe.next() == nil; known != seen[byte(tag)] {
				t.Errorf("the first byte %#02x of an effect of version %d: this limitd reads it: %v; it is in %s: %v", tag, version, known, g.path, seen[byte(tag)])
			}
		}
	}
}

// goldenHex reads a file of hex digits with # comments.
func goldenHex(t testing.TB, path string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(readFile(t, path)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}
