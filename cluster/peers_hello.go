package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	peerMagic      = "limitdPP"
	peerVersion    = 2
	purposeRaft    = 1 // raft's own protocol follows
	purposeRPC     = 2 // frames follow
	handshakeHead  = 12
	maxHandshake   = 1024 // bytes after the head
	maxRaftID      = 128
	maxRefusalText = 600
	lineageLength  = 16 + 8
)

// lineage says what a node belongs to: a cluster, and its generation, which each
// offline recovery of the cluster moves by one (Recover).
type lineage struct {
	cluster    [16]byte // zeros: none yet
	generation uint64   // from 1 on; 0 without a cluster
}

// hello is what the dialer says.
type hello struct {
	version uint8
	purpose uint8
	of      lineage
	raftID  string // the dialer's
	expect  string // the raft id it wants to reach; "" if it knows none
}

// answer is what the listener says.
type answer struct {
	version uint8
	code    refusalCode // handshakeOK, or why not
	of      lineage
	raftID  string // the listener's
	text    string // of a refusal, for the operator
}

// refusalCode says why a handshake was refused. The numbers are on the wire.
type refusalCode uint8

const (
	handshakeOK       refusalCode = 0
	refusedVersion    refusalCode = 1 // another protocol version
	refusedPurpose    refusalCode = 2 // unknown purpose
	refusedCluster    refusalCode = 3 // another cluster id
	refusedReceiver   refusalCode = 4 // the dialer wanted another raft id
	refusedStranger   refusalCode = 5 // the dialer's node id is a member's under another raft id
	refusedSelf       refusalCode = 6 // both sides have the same raft id
	refusedNotReady   refusalCode = 7 // raft does not run here (yet)
	refusedGeneration refusalCode = 8 // the cluster was recovered without one of the two
)

// errHandshake is for bytes that are no handshake.
var errHandshake = errors.New("damaged peer handshake")

func appendHello(dst []byte, h hello) []byte {
	return appendHandshake(dst, h.version, h.purpose, h.of, h.raftID, h.expect)
}

func appendAnswer(dst []byte, a answer) []byte {
	return appendHandshake(dst, a.version, byte(a.code), a.of, a.raftID, a.text)
}

// appendHandshake appends a hello or an answer: they have one form.
func appendHandshake(dst []byte, version, second uint8, of lineage, a, b string) []byte {
	dst = append(dst, peerMagic...)
	dst = append(dst, version, second)
	dst = binary.BigEndian.AppendUint16(dst, uint16(lineageLength+2+len(a)+2+len(b)))
	dst = append(dst, of.cluster[:]...)
	dst = binary.BigEndian.AppendUint64(dst, of.generation)
	for _, s := range [...]string{a, b} {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
		dst = append(dst, s...)
	}
	return dst
}

// readHandshake reads one hello or answer, and no byte more. What follows the
// head is read for any version, and left out of the result if it is not ours.
func readHandshake(r io.Reader) (version, second uint8, of lineage, a, b string, err error) {
	var head [handshakeHead]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return
	}
	if string(head[:8]) != peerMagic {
		err = fmt.Errorf("%w: it does not start with %q", errHandshake, peerMagic)
		return
	}
	version, second = head[8], head[9]
	n := int(binary.BigEndian.Uint16(head[10:]))
	if n > maxHandshake {
		err = fmt.Errorf("%w: %d bytes, at most %d", errHandshake, n, maxHandshake)
		return
	}
	body := make([]byte, n)
	if _, err = io.ReadFull(r, body); err != nil || version != peerVersion {
		return
	}
	if n < lineageLength {
		err = fmt.Errorf("%w: %d bytes are too few", errHandshake, n)
		return
	}
	copy(of.cluster[:], body)
	of.generation = binary.BigEndian.Uint64(body[16:])
	body = body[lineageLength:]
	for _, s := range [...]*string{&a, &b} {
		if len(body) < 2 || len(body)-2 < int(binary.BigEndian.Uint16(body)) {
			err = fmt.Errorf("%w: a string ends outside of it", errHandshake)
			return
		}
		l := int(binary.BigEndian.Uint16(body))
		*s, body = string(body[2:2+l]), body[2+l:]
	}
	if len(body) != 0 {
		err = fmt.Errorf("%w: %d bytes too many", errHandshake, len(body))
	}
	return
}

func readHello(r io.Reader) (h hello, err error) {
	h.version, h.purpose, h.of, h.raftID, h.expect, err = readHandshake(r)
	if err == nil && h.version == peerVersion {
		err = checkRaftID(h.raftID)
	}
	return h, err
}

func readAnswer(r io.Reader) (a answer, err error) {
	var code uint8
	a.version, code, a.of, a.raftID, a.text, err = readHandshake(r)
	a.code = refusalCode(code)
	if err == nil && a.version == peerVersion {
		err = checkRaftID(a.raftID)
	}
	return a, err
}

// checkRaftID refuses what cannot be a raft id: it goes into logs and answers.
func checkRaftID(id string) error {
	if id == "" || len(id) > maxRaftID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: raft id %.40q: 1 to %d printable ASCII characters are allowed", errHandshake, id, maxRaftID)
	}
	return nil
}
