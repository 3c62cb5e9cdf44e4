package cluster

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
)

func framed(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

func TestDamagedFramesAreErrors(t *testing.T) {
	q := appendRequest(nil, rpcRequest{id: 1, kind: kindForward, remaining: 1, payload: []byte("x")})
	length := func(n uint32) []byte { return append(binary.BigEndian.AppendUint32(nil, n), q[4:]...) }
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, io.EOF},
		{"cut in the head", q[:5], io.ErrUnexpectedEOF},
		{"cut in the payload", q[:len(q)-1], io.ErrUnexpectedEOF},
		{"longer than it is", length(1 << 20), io.ErrUnexpectedEOF},
		{"length 0", length(0), errFrame},
		{"shorter than its head", length(requestHead - 5), errFrame},
		{"above the limit", length(maxFrame + 1), errFrame},
		{"id 0", appendRequest(nil, rpcRequest{payload: []byte("x")}), errFrame},
	} {
		if _, err := readRequest(framed(c.b)); !errors.Is(err, c.want) {
			t.Errorf("request, %s: %v, want %v", c.name, err, c.want)
		}
	}
	for name, a := range map[string]rpcResponse{"id 0": {}, "unknown status": {id: 1, status: statusLost + 1}} {
		if _, err := readResponse(framed(appendResponse(nil, a))); !errors.Is(err, errFrame) {
			t.Errorf("response, %s: %v", name, err)
		}
	}
}

func TestFramesOfEverySizeArriveWhole(t *testing.T) {
	for _, n := range []int{0, 1, trustedFrame - 1, trustedFrame, trustedFrame + 1, 3*trustedFrame + 5, maxRequest} {
		payload := make([]byte, n)
		for i := range payload {
			payload[i] = byte(i * 7)
		}
		r := framed(append(appendRequest(nil, rpcRequest{id: 3, payload: payload}), appendRequest(nil, rpcRequest{id: 4})...))
		q, err := readRequest(r)
		if err != nil || q.payload == nil || !bytes.Equal(q.payload, payload) {
			t.Fatalf("%d bytes: %d arrived, %v", n, len(q.payload), err)
		}
		if next, err := readRequest(r); err != nil || next.id != 4 {
			t.Fatalf("after %d bytes: %+v, %v", n, next, err)
		}
	}
}

func TestAnnouncedMemoryIsNotTakenBeforeItArrives(t *testing.T) {
	b := appendRequest(nil, rpcRequest{id: 1, payload: make([]byte, 100)})
	binary.BigEndian.PutUint32(b, maxFrame)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	readRequest(framed(b))
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if allocated > 2*trustedFrame {
		t.Errorf("%d bytes were allocated for a frame of which 100 arrived", allocated)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendRequest(nil, rpcRequest{id: 1, kind: kindForward, remaining: 100, payload: []byte("abc")}))
	f.Add(appendResponse(nil, rpcResponse{id: 1, status: statusRefused}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := readRequest(framed(b)); err == nil && !bytes.HasPrefix(b, appendRequest(nil, q)) {
			t.Errorf("request %x is written as %x", b, appendRequest(nil, q))
		}
		if a, err := readResponse(framed(b)); err == nil && !bytes.HasPrefix(b, appendResponse(nil, a)) {
			t.Errorf("response %x is written as %x", b, appendResponse(nil, a))
		}
	})
}
