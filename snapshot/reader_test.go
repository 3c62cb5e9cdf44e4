package snapshot

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// wrapped hides a reader as raft does.
type wrapped struct{ io.ReadCloser }

func (w wrapped) WrappedReadCloser() io.ReadCloser { return w.ReadCloser }

var _ raft.ReadCloserWrapper = wrapped{}

func TestTheReaderIsFoundBehindWrappers(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 3, 100, rec("a", "1", 200))
	m, rc, err := s.Open("1-3")
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	r, ok := FromReader(wrapped{wrapped{rc}})
	if !ok || r.Meta().Index != 3 || r.Meta().T != 100 || m.Index != 3 || m.ConfigurationIndex != 1 {
		t.Fatal(ok, m)
	}
	if _, ok := FromReader(wrapped{io.NopCloser(strings.NewReader(""))}); ok {
		t.Fatal("found a reader where none is")
	}
	if err := r.Each(func(Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 9)); n != 0 || err == nil {
		t.Fatal("Read after Each gave", n, err)
	}
}

func TestEachAndReadDoNotMix(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 3, 100, rec("a", "1", 200))
	_, rc, err := s.Open("1-3")
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	if _, err := rc.Read(make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	if err := rc.(*Reader).Each(func(Record) error { return nil }); err == nil {
		t.Fatal("Each in the middle of a stream")
	}
}

func TestEachStopsAtTheFirstError(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 3, 100, rec("a", "1", 200), rec("b", "1", 200))
	r, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mine := errors.New("mine")
	n := 0
	if err := r.Each(func(Record) error { n++; return mine }); !errors.Is(err, mine) || n != 1 {
		t.Fatal(n, err)
	}
}

func TestOpenOfASnapshotThatIsNotThere(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	if _, _, err := s.Open("1-3"); !errors.Is(err, ErrNoSnapshot) {
		t.Fatal(err)
	}
	commit(t, s, 4, 100)
	if _, _, err := s.Open("1-3"); !errors.Is(err, ErrNoSnapshot) {
		t.Fatal(err)
	}
}

func TestAReaderSeesOneStateWhateverIsWritten(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	var first []Record
	for i := range 2000 {
		first = append(first, rec(string(rune('a'+i%26))+strings.Repeat("x", i/26), "first", 200))
	}
	commit(t, s, 1, 100, first...)
	before, want := stream(t, s)
	_, rc, err := s.Open(before.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	got := make([]byte, 10)
	if _, err := io.ReadFull(rc, got); err != nil {
		t.Fatal(err)
	}
	commit(t, s, 2, 100, Record{Deleted: true}, rec("other", "second", 200))
	commit(t, s, 3, 100, rec("third", "third", 200))
	other := openTest(t, t.TempDir(), Options{})
	commit(t, other, 9, 100, rec("installed", "1", 200))
	m, b := stream(t, other)
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	if string(append(got, rest...)) != string(want) {
		t.Fatal("the stream changed under its reader")
	}
	expect(t, contents(t, s), rec("installed", "1", 200))
}

func TestTheReplacedFileIsClosedWithItsLastReader(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 1, 100, rec("a", "1", 200))
	old := s.cur
	m, b := stream(t, s)
	r, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	m.Index = 2
	if err := send(t, s, m, b); err != nil {
		t.Fatal(err)
	}
	if old.refs != 1 || old.db.Path() == "" {
		t.Fatal("closed under its reader")
	}
	r.Close()
	r.Close()
	if old.refs != 0 || old.db.Path() != "" {
		t.Fatal("still open without a reader")
	}
}

// A reader that is never closed would keep the file from reusing its pages.
func TestAReaderThatIsIdleOrOldGivesUp(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 1, 100, rec("a", "1", 200))
	read := func(r *Reader) error { _, err := r.Read(make([]byte, 4)); return err }
	open := func() *Reader {
		r, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	idle, old, busy := open(), open(), open()
	defer busy.Close()
	idle.used = time.Now().Add(-s.readerIdle)
	old.opened = time.Now().Add(-s.readerLife)
	busy.used = time.Now().Add(-s.readerIdle)
	if err := errors.Join(read(old), read(busy)); err != nil { // in use
		t.Fatal(err)
	}
	for _, r := range []*Reader{idle, old, busy} {
		r.watch()
	}
	if err := read(idle); !errors.Is(err, ErrExpired) {
		t.Fatal("idle:", err)
	}
	if err := read(old); !errors.Is(err, ErrExpired) {
		t.Fatal("old:", err)
	}
	if err := read(busy); err != nil {
		t.Fatal("busy:", err)
	}
	if s.cur.refs != 2 || s.cur.db.Stats().OpenTxN != 1 {
		t.Fatal("given up, not given back:", s.cur.refs, s.cur.db.Stats().OpenTxN)
	}
}

func TestTheWatchRunsByItself(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commit(t, s, 1, 100)
	s.readerIdle = time.Millisecond
	if _, err := s.open(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); s.cur.db.Stats().OpenTxN != 0; {
		if time.Now().After(deadline) {
			t.Fatal("an idle reader holds on")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCloseEndsReaders(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	commit(t, s, 1, 100, rec("a", "1", 200))
	r, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 4)); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, _, err := s.Open("1-1"); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := s.SaveReceipt(Receipt{}); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	k := create(t, s, 2)
	if err := k.Commit(Header{}, nil); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	k.Release()
	if _, err := create(t, s, 3).Write([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	openTest(t, dir, Options{}) // the file is free
}
