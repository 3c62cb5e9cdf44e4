package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// decodeAll returns the entry's effects, with slices of their own.
func decodeAll(data []byte) (Turn, []Effect, error) {
	e, err := parseEntry(data)
	if err != nil {
		return Turn{}, nil, err
	}
	var all []Effect
	for d := e.effects(0); len(d.rest) > 0; {
		d.mustNext()
		x := d.effect
		x.Key, x.Ident, x.State = bytes.Clone(x.Key), bytes.Clone(x.Ident), bytes.Clone(x.State)
		if d.same {
			x.State = binary.LittleEndian.AppendUint64(nil, uint64(x.Expiry))
		}
		all = append(all, x)
	}
	return e.Turn, all, nil
}

func le64(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// seal makes an entry of any content whose checksum is right.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))
}

var (
	goldenTurn    = Turn{Base: 41, Term: 7, At: 1_700_000_000_000_000_000, Version: 1}
	goldenEffects = []Effect{
		{Op: OpClear, NS: 3},
		{Op: OpClearAll},
		{Op: OpReplace, NS: 0, Key: []byte("user:42"), Ident: []byte{1}, State: le64(1_700_000_005_400_000_000), Expiry: 1_700_000_005_400_000_000},
		{Op: OpReplace, NS: 15, Key: []byte{}, Ident: []byte("\x02day"), State: []byte("state"), Expiry: 1_699_999_999_000_000_000},
		{Op: OpSplice, NS: 1, Key: []byte("log"), Ident: []byte{7, 0}, Drop: 16, State: []byte("12345678"), Expiry: 1<<63 - 1},
		{Op: OpDelete, NS: 1, Key: []byte("gone\x00\xff"), Ident: []byte{1}},
		{Op: OpSetCluster, State: []byte("0123456789abcdef\x05\x00\x00\x00\x00\x00\x00\x00")},
		{Op: OpSetOffset, State: le64(-3_600_000_000_000)},
	}
)

// goldens are the golden entries, that of version v at v-1.
var goldens = []struct {
	path    string
	effects []Effect
}{
	{"testdata/entry-v1.hex", goldenEffects},
	{"testdata/entry-v2.hex", append(slices.Clone(goldenEffects),
		Effect{Op: OpSplice, NS: 1, Key: []byte("log"), Ident: []byte{7, 0}, Drop: 32, Cut: 300, State: []byte("abc"), Expiry: 1_700_000_000_000_000_001},
		Effect{Op: OpSplice, Key: []byte("log"), Ident: []byte{1}, Cut: 16, Expiry: 1_700_000_001_000_000_000})},
}

// The files are what each version wrote: this limitd writes the same, and every later one must read it.
func TestGoldenEntries(t *testing.T) {
	for i, g := range goldens {
		golden, want := goldenHex(t, g.path), goldenTurn
		want.Version = uint8(i + 1)
		if got := AppendEntry(nil, want, g.effects); !bytes.Equal(got, golden) {
			t.Errorf("%s: AppendEntry writes\n%x", g.path, got)
		}
		turn, effects, err := decodeAll(golden)
		if err != nil || turn != want || !same(effects, g.effects) {
			t.Errorf("%s: read: %v\n%+v\n%+v", g.path, err, turn, effects)
		}
		if at, ok := EntryTime(golden); !ok || at != want.At {
			t.Errorf("%s: EntryTime: %d, %v", g.path, at, ok)
		}
	}
}

// same compares effects; an empty slice is the same as none.
func same(a, b []Effect) bool {
	if len(a) != len(b) {
		return false
	}
	norm := func(e Effect) Effect {
		e.Key, e.Ident, e.State = append([]byte{}, e.Key...), append([]byte{}, e.Ident...), append([]byte{}, e.State...)
		return e
	}
	for i := range a {
		if !reflect.DeepEqual(norm(a[i]), norm(b[i])) {
			return false
		}
	}
	return true
}

func TestEntryIsCompactAndAllocatesNothing(t *testing.T) {
	turn := Turn{Base: 1 << 40, Term: 12, At: 1_700_000_000_000_000_000}
	tat := turn.At + 5400*1_000_000_000
	e := []Effect{{Op: OpReplace, Key: []byte("user:0123456789012345678"), Ident: []byte{1}, State: le64(tat), Expiry: tat}}
	empty, one := len(AppendEntry(nil, turn, nil)), AppendEntry(nil, turn, e)
	if n := len(one) - empty; n > 36 {
		t.Errorf("an admission of a 24-byte key takes %d bytes", n)
	}
	dst := make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() { dst = AppendEntry(dst[:0], turn, e) }); n != 0 {
		t.Errorf("AppendEntry allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := parseEntry(one); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("parseEntry allocates %v times", n)
	}
	before := append([]byte("before"), make([]byte, 0, 200)...)
	if got := AppendEntry(before, turn, e); !bytes.Equal(got[len(before):], one) {
		t.Error("the entry depends on what dst holds already")
	}
}

func TestEntryThatCannotBeRead(t *testing.T) {
	good := AppendEntry(nil, goldenTurn, goldenEffects)
	head := good[:entryHeader]
	with := func(count byte, effects ...byte) []byte {
		return seal(append(append(bytes.Clone(head), count), effects...))
	}
	cutting := func(effect ...byte) []byte {
		return seal(append(append([]byte{VersionCut}, head[1:]...), append([]byte{1}, effect...)...))
	}
	for _, c := range []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"empty", nil, errDamaged, "0 bytes"},
		{"cut short", good[:len(good)-1], errDamaged, "checksum"},
		{"only a header", seal(good[:entryHeader]), errDamaged, "bytes"},
		{"version byte flipped", append([]byte{good[0] + 1}, good[1:]...), errDamaged, "checksum"},
		{"endless count", seal(append(bytes.Clone(head), 0x80, 0x80)), errDamaged, "effect count"},
		{"more effects counted", with(2, byte(OpClearAll)), errDamaged, "effect 2 of 2: ends too early"},
		{"fewer effects counted", with(1, byte(OpClearAll), byte(OpClearAll)), errDamaged, "1 bytes after the last effect"},
		{"op 0", with(1, 0), errDamaged, "unknown op 0"},
		{"op 8", with(1, 8), errDamaged, "unknown op 8"},
		{"unknown flag", with(1, 0x40|byte(OpClearAll)), errDamaged, "flags"},
		{"flag on a delete", with(1, flagStateIsExp|byte(OpDelete), 0, 1, 'k', 1, 1), errDamaged, "flags"},
		{"clear without namespace", with(1, byte(OpClear)), errDamaged, "too early"},
		{"key longer than the entry", with(1, byte(OpDelete), 0, 9, 'k', 1, 1), errDamaged, "key: ends"},
		{"key too long", with(1, byte(OpDelete), 0, 0xff, 0xff, 3, 'k'), errDamaged, "key: 65535 is above"},
		{"no identity", with(1, byte(OpDelete), 0, 1, 'k', 0), errDamaged, "empty identity"},
		{"identity cut", with(1, byte(OpDelete), 0, 1, 'k', 2, 1), errDamaged, "identity: ends"},
		{"no expiry", with(1, byte(OpReplace), 0, 1, 'k', 1, 1), errDamaged, "expiry"},
		{"drop too large", with(1, byte(OpSplice), 0, 1, 'k', 1, 1, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0), errDamaged, "drop"},
		{"a cut in version 1", with(1, flagCut|byte(OpSplice), 0, 1, 'k', 1, 1, 1, 1, 0, 0), errDamaged, "flags"},
		{"a cut by a replace", cutting(flagCut|byte(OpReplace), 0, 1, 'k', 1, 1, 1, 1, 0, 0), errDamaged, "flags"},
		{"a cut by a delete", cutting(flagCut|byte(OpDelete), 0, 1, 'k', 1, 1), errDamaged, "flags"},
		{"no cut", cutting(flagCut|byte(OpSplice), 0, 1, 'k', 1, 1, 1), errDamaged, "cut: ends"},
		{"cut too large", cutting(flagCut|byte(OpSplice), 0, 1, 'k', 1, 1, 0, 0x81, 0x80, 0x80, 8, 0, 0), errDamaged, "cut: 16777217 is above 16777216"},
		{"drop and cut too large", cutting(flagCut|byte(OpSplice), 0, 1, 'k', 1, 1, 1, 0x80, 0x80, 0x80, 8, 0, 0), errDamaged, "cut: 16777216 is above 16777215"},
		{"state longer than the entry", with(1, byte(OpReplace), 0, 1, 'k', 1, 1, 0, 200, 1), errDamaged, "state: ends"},
		{"cluster id cut", with(1, byte(OpSetCluster), 1, 2, 3), errDamaged, "too early"},
		{"cluster id of zeros", with(1, append([]byte{byte(OpSetCluster)}, make([]byte, 24)...)...), errDamaged, "zeros"},
	} {
		if _, err := parseEntry(c.data); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x20
		if _, err := parseEntry(bad); err == nil {
			t.Errorf("byte %d flipped: still read", i)
		}
	}
	for _, data := range [][]byte{nil, good[:entryMin-1], append([]byte{0}, good[1:]...), append([]byte{ReadsEntry + 1}, good[1:]...)} {
		if _, ok := EntryTime(data); ok {
			t.Errorf("EntryTime takes %x for an entry", data)
		}
	}
}

func TestAppendEntryRefusesWhatWouldHaltEveryNode(t *testing.T) {
	long := make([]byte, MaxState+1)
	for name, e := range map[string]Effect{
		"key too long":           {Op: OpDelete, Key: long[:MaxKey+1], Ident: []byte{1}},
		"no identity":            {Op: OpDelete, Key: []byte("k")},
		"identity too long":      {Op: OpDelete, Ident: long[:MaxIdent+1]},
		"state too long":         {Op: OpReplace, Ident: []byte{1}, State: long},
		"negative drop":          {Op: OpSplice, Ident: []byte{1}, Drop: -1},
		"negative cut":           {Op: OpSplice, Ident: []byte{1}, Cut: -1},
		"cut too large":          {Op: OpSplice, Ident: []byte{1}, Cut: MaxState + 1},
		"drop and cut too large": {Op: OpSplice, Ident: []byte{1}, Drop: MaxState, Cut: 1},
		"cut beyond all numbers": {Op: OpSplice, Ident: []byte{1}, Drop: 1, Cut: math.MaxInt},
		"op 0":                   {},
		"op 8":                   {Op: 8},
		"offset of 7 bytes":      {Op: OpSetOffset, State: long[:7]},
		"cluster id of 16 bytes": {Op: OpSetCluster, State: []byte("0123456789abcdef")},
		"cluster id of zeros":    {Op: OpSetCluster, State: long[:24]},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			AppendEntry(nil, Turn{Version: ReadsEntry}, []Effect{e})
		}()
	}
}

// A member that reads version 1 alone would halt at a cut, so a turn of that version has none.
func TestAppendEntryRefusesACutBelowItsVersion(t *testing.T) {
	cut := []Effect{{Op: OpSplice, Ident: []byte{1}, Cut: 1}}
	for version := range uint8(ReadsEntry + 1) {
		func() {
			defer func() {
				if refused := recover() != nil; refused != (version < VersionCut) {
					t.Errorf("version %d: refused %v", version, refused)
				}
			}()
			AppendEntry(nil, Turn{Version: version}, cut)
		}()
	}
}

func genEffect(t *rapid.T) Effect {
	e := Effect{
		Op:    rapid.SampledFrom([]Op{OpReplace, OpSplice, OpDelete, OpClear, OpClearAll, OpSetCluster, OpSetOffset}).Draw(t, "op"),
		NS:    rapid.Uint8().Draw(t, "ns"),
		Key:   rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "key"),
		Ident: rapid.SliceOfN(rapid.Byte(), 1, 255).Draw(t, "ident"),
	}
	switch e.Op {
	case OpReplace, OpSplice:
		e.Expiry = rapid.Int64().Draw(t, "expiry")
		e.State = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "state")
		if rapid.Bool().Draw(t, "state is expiry") {
			e.State = le64(e.Expiry)
		}
		if e.Op == OpSplice {
			e.Drop = rapid.IntRange(0, MaxState).Draw(t, "drop")
			e.Cut = rapid.IntRange(0, MaxState-e.Drop).Draw(t, "cut")
		}
	case OpDelete:
	case OpClear:
		e.Key, e.Ident = nil, nil
	case OpClearAll:
		e = Effect{Op: OpClearAll}
	case OpSetCluster:
		e = Effect{Op: OpSetCluster, State: append([]byte{1}, rapid.SliceOfN(rapid.Byte(), 23, 23).Draw(t, "id")...)}
	case OpSetOffset:
		e = Effect{Op: OpSetOffset, State: le64(rapid.Int64().Draw(t, "offset"))}
	}
	return e
}

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn := Turn{rapid.Uint64().Draw(t, "base"), rapid.Uint64().Draw(t, "term"), rapid.Int64().Draw(t, "at"), rapid.Uint8Range(1, ReadsEntry).Draw(t, "version")}
		effects := rapid.SliceOfN(rapid.Custom(genEffect), 0, 20).Draw(t, "effects")
		for i := range effects {
			if turn.Version < VersionCut {
				effects[i].Cut = 0
			}
		}
		data := AppendEntry(nil, turn, effects)
		gotTurn, got, err := decodeAll(data)
		if err != nil || gotTurn != turn || !same(got, effects) {
			t.Fatalf("%v: %+v %+v", err, gotTurn, got)
		}
	})
}

// FuzzEntry: bytes never panic, and what can be read means the same after it is written again. The checksum is put right, for the
// fuzzer would not find it.
func FuzzEntry(f *testing.F) {
	for _, g := range goldens {
		f.Add(goldenHex(f, g.path))
	}
	f.Add(AppendEntry(nil, Turn{}, nil))
	f.Add([]byte{1})
	f.Add([]byte{ReadsEntry + 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		EntryTime(data)
		CheckVersion(data)
		parseEntry(data)
		if len(data) >= 4 {
			data = seal(data[:len(data)-4])
		}
		turn, effects, err := decodeAll(data)
		if err != nil {
			return
		}
		again, more, err := decodeAll(AppendEntry(nil, turn, effects))
		if err != nil || again != turn || !same(more, effects) {
			t.Fatalf("%v: %+v %+v becomes %+v %+v", err, turn, effects, again, more)
		}
	})
}
