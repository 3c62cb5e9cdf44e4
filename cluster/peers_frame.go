package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	maxFrame     = 4 << 20          // bytes after the length field
	requestHead  = 4 + 8 + 1 + 4    // length, id, kind, remaining ms
	responseHead = 4 + 8 + 1        // length, id, status
	maxRequest   = maxFrame - 8 - 5 // payload bytes
	maxResponse  = maxFrame - 8 - 1 // payload bytes
	trustedFrame = 256 << 10        // payloads up to this are allocated at their word
)

// Statuses of a rpcResponse.
const (
	statusAnswer  = 0 // the payload is the handler's answer
	statusRefused = 1 // no handler took the request
	statusLost    = 2 // a handler took it, and its answer cannot be sent
)

var errFrame = errors.New("damaged peer frame")

// rpcRequest and rpcResponse are frames. Ids are the caller's, never 0, and never used
// twice on a connection.
type rpcRequest struct {
	id        uint64
	kind      uint8
	remaining uint32 // ms
	payload   []byte
}

type rpcResponse struct {
	id      uint64
	status  uint8
	payload []byte
}

func appendRequest(dst []byte, q rpcRequest) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(requestHead-4+len(q.payload)))
	dst = binary.BigEndian.AppendUint64(dst, q.id)
	dst = append(dst, q.kind)
	dst = binary.BigEndian.AppendUint32(dst, q.remaining)
	return append(dst, q.payload...)
}

func appendResponse(dst []byte, a rpcResponse) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(responseHead-4+len(a.payload)))
	dst = binary.BigEndian.AppendUint64(dst, a.id)
	dst = append(dst, a.status)
	return append(dst, a.payload...)
}

// readRequest reads a frame; io.EOF when the connection ended between frames.
func readRequest(r *bufio.Reader) (q rpcRequest, err error) {
	head, n, err := readHead(r, requestHead)
	if err != nil {
		return q, err
	}
	q.id = binary.BigEndian.Uint64(head[4:])
	q.kind = head[12]
	q.remaining = binary.BigEndian.Uint32(head[13:])
	r.Discard(requestHead)
	if q.id == 0 {
		return q, fmt.Errorf("%w: request id 0", errFrame)
	}
	q.payload, err = readPayload(r, n)
	return q, err
}

// readResponse is readRequest's counterpart.
func readResponse(r *bufio.Reader) (a rpcResponse, err error) {
	head, n, err := readHead(r, responseHead)
	if err != nil {
		return a, err
	}
	a.id = binary.BigEndian.Uint64(head[4:])
	a.status = head[12]
	r.Discard(responseHead)
	if a.id == 0 || a.status > statusLost {
		return a, fmt.Errorf("%w: response id %d, status %d", errFrame, a.id, a.status)
	}
	a.payload, err = readPayload(r, n)
	return a, err
}

// readHead shows the first size bytes of a frame, and says how many follow them.
func readHead(r *bufio.Reader, size int) (head []byte, n int, err error) {
	head, err = r.Peek(size)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, err
	}
	length := binary.BigEndian.Uint32(head)
	if length < uint32(size-4) || length > maxFrame {
		return nil, 0, fmt.Errorf("%w: length %d, %d to %d are allowed", errFrame, length, size-4, maxFrame)
	}
	return head, int(length) - (size - 4), nil
}

// readPayload reads n bytes into memory of their own, never nil. Memory for a
// large payload is taken as it arrives, not when it is announced.
func readPayload(r *bufio.Reader, n int) ([]byte, error) {
	b := make([]byte, min(n, trustedFrame))
	_, err := io.ReadFull(r, b)
	for err == nil && len(b) < n {
		at := len(b)
		b = append(b, make([]byte, min(n-at, at))...)
		_, err = io.ReadFull(r, b[at:])
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}
