package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

var testHeader = Header{Last: 7, T: 100, Offset: -5, Chain: 0xfeed, ClusterID: [16]byte{1, 2, 3}, Generation: 2}

func write(t testing.TB, h Header, records ...Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewStreamWriter(&b, h)
	for _, r := range records {
		if err := w.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	info, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if info.Bytes != int64(b.Len()) || info.Records != uint64(len(records)) || info.Header != h {
		t.Fatalf("%+v of %d bytes", info, b.Len())
	}
	return b.Bytes()
}

// read returns what a stream holds.
func read(r io.Reader) (h Header, records []Record, err error) {
	heads := 0
	got, err := ReadStream(r, func(x Header) error { heads++; h = x; return nil }, func(x Record) error {
		records = append(records, Record{Name: bytes.Clone(x.Name), State: bytes.Clone(x.State), Expiry: x.Expiry})
		return nil
	})
	if err == nil && (heads != 1 || got != h) {
		err = errors.New("head was not called once with what ReadStream returns")
	}
	return h, records, err
}

func someRecords() []Record {
	return []Record{
		rec("", "an empty key", 101),
		rec("a", "", 102),
		{Name: AppendName(nil, 0, []byte("b"), []byte{1}), State: appendInt64(nil, 103), Expiry: 103}, // stored once
		{Name: AppendName(nil, 0, []byte("b"), []byte{2}), State: appendInt64(nil, 104), Expiry: 105},
		{Name: AppendName(nil, 0, []byte("b"), bytes.Repeat([]byte{3}, 255)), State: bytes.Repeat([]byte{4}, 200000), Expiry: 1 << 62},
		{Name: AppendName(nil, 9, []byte("\x00\xff\r\n"), []byte{1}), State: []byte{0}, Expiry: 101},
	}
}

func TestStreamGivesBackWhatWasWritten(t *testing.T) {
	b := write(t, testHeader, someRecords()...)
	for _, r := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
		h, records, err := read(r)
		if err != nil {
			t.Fatal(err)
		}
		if h != testHeader || !slices.EqualFunc(records, someRecords(), func(a, b Record) bool {
			return bytes.Equal(a.Name, b.Name) && bytes.Equal(a.State, b.State) && a.Expiry == b.Expiry
		}) {
			t.Fatalf("%+v %+v", h, records)
		}
	}
}

// The same state, reached in other orders, at other indexes, under another configuration: the same bytes.
func TestEqualStatesHaveEqualStreams(t *testing.T) {
	h := Header{Last: 3, T: 100, ClusterID: [16]byte{9}}
	records := someRecords()
	want := write(t, h, records...)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range uint64(5) {
		s := openTest(t, t.TempDir(), Options{})
		for index, part := range [][]Record{
			{rec("x", "to be removed", 900), rec("y", "to expire", 90), rec("a", "to be overwritten", 900)},
			records,
			{gone("x")},
		} {
			part = slices.Clone(part)
			if index != 1 {
				rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			}
			k, err := s.Create(1, 10*i+uint64(index)+3, 1+i, testConf, i, nil)
			if err != nil {
				t.Fatal(err)
			}
			now := h
			now.T = []int64{80, 100, 100}[index]
			if err := k.(*Sink).Commit(now, part); err != nil {
				t.Fatal(err)
			}
			k.(*Sink).Release()
		}
		if _, got := stream(t, s); !bytes.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	}
}

func TestAnyFlippedBitOfAStreamIsFound(t *testing.T) {
	records := someRecords()
	records[4].State = records[4].State[:20]
	b := write(t, testHeader, records...)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, _, err := read(bytes.NewReader(b)); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Fatalf("byte %d bit %d: %v", i, bit, err)
			}
			b[i] ^= 1 << bit
		}
		if _, _, err := read(bytes.NewReader(b[:i])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut off after %d bytes: %v", i, err)
		}
	}
	if _, _, err := read(bytes.NewReader(append(b, 0))); !errors.Is(err, ErrDamaged) {
		t.Fatal("a byte after the trailer:", err)
	}
	if _, _, err := read(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
}

// Flipping anything of the state changes the checksum, which is how nodes and runs are compared.
func TestChecksumCoversHeaderAndRecords(t *testing.T) {
	seen := map[uint32]string{}
	add := func(what string, h Header, records ...Record) {
		info, err := Inspect(bytes.NewReader(write(t, h, records...)))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[info.Checksum]; ok {
			t.Errorf("%s and %s have one checksum", what, other)
		}
		seen[info.Checksum] = what
	}
	h, r := testHeader, rec("a", "1", 200)
	add("it", h, r)
	for what, change := range map[string]func(*Header){
		"last": func(h *Header) { h.Last++ }, "T": func(h *Header) { h.T++ }, "offset": func(h *Header) { h.Offset++ },
		"chain": func(h *Header) { h.Chain++ }, "cluster": func(h *Header) { h.ClusterID[15]++ }, "generation": func(h *Header) { h.Generation++ },
	} {
		x := h
		change(&x)
		add(what, x, r)
	}
	add("state", h, rec("a", "2", 200))
	add("expiry", h, rec("a", "1", 201))
	add("name", h, rec("b", "1", 200))
	add("no record", h)
	const far = 1 << 62 // beyond every T below
	add("a far expiry", h, rec("a", "1", far))
	for i := range 8 {
		bit := int64(1) << (8*i + 1)
		last, at := h, h
		last.Last ^= uint64(bit)
		at.T ^= bit
		add(fmt.Sprintf("byte %d of last", i), last, rec("a", "1", far))
		add(fmt.Sprintf("byte %d of T", i), at, rec("a", "1", far))
		add(fmt.Sprintf("byte %d of the expiry", i), h, rec("a", "1", far^bit))
	}
}

// sealed returns the stream of raw record bytes with a right trailer, so that only the records can be at fault.
func sealed(count uint64, raw ...[]byte) []byte {
	var e encoder
	b := e.head(nil, testHeader)
	for _, r := range raw {
		b = append(b, r...)
	}
	b = append(b, flagTrailer)
	b = binary.LittleEndian.AppendUint64(b, count)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func raw(flags byte, name []byte, expiry int64, state []byte) []byte {
	b := []byte{flags}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(name)))
	b = binary.LittleEndian.AppendUint64(b, uint64(expiry))
	if flags == stateFollows {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(state)))
	}
	return append(append(b, name...), state...)
}

func TestStreamsThatNobodyWritesAreRejected(t *testing.T) {
	a, b := rec("a", "", 0).Name, rec("b", "", 0).Name
	if _, _, err := read(bytes.NewReader(sealed(2, raw(0, a, 200, nil), raw(1, b, 200, nil)))); err != nil {
		t.Fatal("the sealed stream itself:", err)
	}
	for what, s := range map[string][]byte{
		"records out of order":    sealed(2, raw(0, b, 200, nil), raw(0, a, 200, nil)),
		"a record twice":          sealed(2, raw(0, a, 200, nil), raw(0, a, 200, nil)),
		"an expired record":       sealed(1, raw(0, a, 100, nil)),
		"a state spelled out":     sealed(1, raw(0, a, 200, appendInt64(nil, 200))),
		"unknown flags":           sealed(1, raw(2, a, 200, nil)),
		"a name without identity": sealed(1, raw(0, a[:4], 200, nil)),
		"an empty name":           sealed(1, raw(0, nil, 200, nil)),
		"a long identity":         sealed(1, raw(0, AppendName(nil, 0, nil, make([]byte, 256)), 200, nil)),
		"a long name":             sealed(1, raw(0, AppendName(nil, 0, make([]byte, MaxName), []byte{1}), 200, nil)),
		"too many in the trailer": sealed(2, raw(0, a, 200, nil)),
		"too few in the trailer":  sealed(0, raw(0, a, 200, nil)),
		"another magic":           []byte("REDIS0011 and so on, for long enough to be a header of its own and then some"),
		"nothing":                 nil,
	} {
		if _, _, err := read(bytes.NewReader(s)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	next := write(t, testHeader)
	next[len(streamMagic)] = Reads + 1
	if _, _, err := read(bytes.NewReader(next)); !errors.Is(err, ErrVersion) || errors.Is(err, ErrDamaged) {
		t.Error("a newer version:", err)
	}
}

func TestAHostileLengthCostsNoMemory(t *testing.T) {
	huge := raw(0, rec("a", "", 0).Name, 200, nil)
	binary.LittleEndian.PutUint32(huge[11:], MaxState)
	var e encoder
	short := append(e.head(nil, testHeader), huge...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Inspect(bytes.NewReader(short))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	allocated := after.TotalAlloc - before.TotalAlloc
	if allocated > 1<<20 {
		t.Errorf("%d bytes for a stream of %d", allocated, len(short))
	}
	binary.LittleEndian.PutUint32(huge[11:], MaxState+1)
	if _, err := Inspect(bytes.NewReader(append(e.head(nil, testHeader), huge...))); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
}

func TestErrorsOfReaderAndCallersComeThrough(t *testing.T) {
	b := write(t, testHeader, someRecords()...)
	mine := errors.New("mine")
	ok := func(Header) error { return nil }
	if _, err := ReadStream(io.MultiReader(bytes.NewReader(b[:90]), iotest.ErrReader(mine)), ok, func(Record) error { return nil }); !errors.Is(err, mine) {
		t.Error(err)
	}
	if _, err := ReadStream(io.MultiReader(bytes.NewReader(b), iotest.ErrReader(mine)), ok, func(Record) error { return nil }); !errors.Is(err, mine) {
		t.Error("after the trailer:", err)
	}
	if _, err := ReadStream(bytes.NewReader(b), func(Header) error { return mine }, nil); !errors.Is(err, mine) {
		t.Error(err)
	}
	if _, err := ReadStream(bytes.NewReader(b), ok, func(Record) error { return mine }); !errors.Is(err, mine) {
		t.Error(err)
	}
}

func TestStreamWriterRefusesWhatReadersReject(t *testing.T) {
	w := NewStreamWriter(io.Discard, testHeader)
	if err := w.Put(rec("b", "1", 200)); err != nil {
		t.Fatal(err)
	}
	for what, r := range map[string]Record{
		"out of order": rec("a", "1", 200), "twice": rec("b", "1", 200), "expired": rec("c", "1", 100),
		"nameless": {Expiry: 200}, "too big": rec("c", strings.Repeat("x", MaxState+1), 200),
	} {
		if w.Put(r) == nil {
			t.Error(what)
		}
	}
}

func TestSaveToWritesTheStreamAndNothingElse(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	dir := t.TempDir()
	path := filepath.Join(dir, "saved")
	if _, err := s.SaveTo(path); !errors.Is(err, ErrNoSnapshot) {
		t.Fatal(err)
	}
	commit(t, s, 4, 100, someRecords()...)
	for range 2 { // the second replaces the first
		info, err := s.SaveTo(path)
		if err != nil {
			t.Fatal(err)
		}
		_, want := stream(t, s)
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatal("not the stream", err)
		}
		if info.Header != s.meta.Header || info.Records != 6 || info.Bytes != int64(len(got)) ||
			info.Checksum != binary.LittleEndian.Uint32(got[len(got)-4:]) {
			t.Fatalf("%+v", info)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	if _, err := s.SaveTo(filepath.Join(dir, "no", "where")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if n := s.cur.db.Stats().OpenTxN; n != 0 {
		t.Fatal("readers left:", n)
	}
}

func TestNamesSplitAsTheyWereAppended(t *testing.T) {
	for _, x := range []struct {
		ns         uint8
		key, ident string
	}{{0, "", "\x01"}, {15, "user:42", "ab"}, {255, strings.Repeat("k", MaxKey), strings.Repeat("i", MaxIdent)}, {1, "\x00\x00", "\x00"}} {
		ns, key, ident, err := SplitName(AppendName([]byte{}, x.ns, []byte(x.key), []byte(x.ident)))
		if err != nil || ns != x.ns || string(key) != x.key || string(ident) != x.ident {
			t.Error(ns, key, ident, err)
		}
	}
}

func FuzzReadStream(f *testing.F) {
	f.Add(write(f, testHeader, someRecords()[:4]...))
	f.Add(write(f, Header{}))
	f.Add(sealed(1, raw(0, rec("a", "", 0).Name, 200, nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h, records, err := read(bytes.NewReader(b))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(1<<20+40*len(b)) {
			t.Errorf("%d bytes of memory for a stream of %d", used, len(b))
		}
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		// What is accepted is canonical: written again, it is the same.
		if again := write(t, h, records...); !bytes.Equal(again, b) {
			t.Fatalf("read  %q\nwrote %q", b, again)
		}
	})
}

func FuzzMetaData(f *testing.F) {
	f.Add(appendMeta(nil, fileMeta{Meta: Meta{Header: testHeader, Index: 9, Term: 2, Configuration: testConf, ConfigurationIndex: 1}, tally: tally{3, 4}}))
	f.Add(appendReceipt(nil, Receipt{At: 1, Boot: 2, BootID: "x"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))} {
			for _, err := range []error{
				func() error { _, err := decodeMeta("f", b); return err }(),
				func() error { _, err := decodeReceipt("f", b); return err }(),
			} {
				if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
					t.Fatal(err)
				}
			}
			decodeValue([]byte("name"), b)
		}
	})
}
