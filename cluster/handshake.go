package cluster

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// The handshake is the first exchange of every peer connection, before anything
// else is read: hello from the dialer, answer from the listener (FORMAT.md).
// Both sides check the other one.

const (
	peerMagic       = "limitdPP"
	peerVersion     = 1
	purposeRaft     = 1 // raft's own protocol follows
	purposeRPC      = 2 // frames follow
	handshakeHead   = 12
	maxHandshake    = 1024 // bytes after the head
	maxRaftID       = 128
	maxRefusalText  = 600
	clusterIDLength = 16
)

// hello is what the dialer says.
type hello struct {
	version   uint8
	purpose   uint8
	clusterID [16]byte // zeros: none yet
	raftID    string   // the dialer's
	expect    string   // the raft id it wants to reach; "" if it knows none
}

// answer is what the listener says.
type answer struct {
	version   uint8
	code      refusalCode // handshakeOK, or why not
	clusterID [16]byte
	raftID    string // the listener's
	text      string // of a refusal, for the operator
}

// refusalCode says why a handshake was refused. The numbers are on the wire.
type refusalCode uint8

const (
	handshakeOK     refusalCode = 0
	refusedVersion  refusalCode = 1 // another protocol version
	refusedPurpose  refusalCode = 2 // unknown purpose
	refusedCluster  refusalCode = 3 // another cluster id
	refusedReceiver refusalCode = 4 // the dialer wanted another raft id
	refusedStranger refusalCode = 5 // the dialer's node id is a member's under another raft id
	refusedSelf     refusalCode = 6 // both sides have the same raft id
	refusedNotReady refusalCode = 7 // raft does not run here (yet)
)

// refusal is the error of a handshake that one of the two sides refused.
type refusal struct {
	code   refusalCode
	text   string
	raftID string // of the other side
	local  bool   // this side refused
}

func (r *refusal) Error() string {
	if r.local {
		return r.text
	}
	return fmt.Sprintf("refused by %s: %s", r.raftID, r.text)
}

// errHandshake is for bytes that are no handshake.
var errHandshake = errors.New("damaged peer handshake")

func appendHello(dst []byte, h hello) []byte {
	dst = append(dst, peerMagic...)
	dst = append(dst, h.version, h.purpose)
	return appendBody(dst, h.clusterID, h.raftID, h.expect)
}

func appendAnswer(dst []byte, a answer) []byte {
	dst = append(dst, peerMagic...)
	dst = append(dst, a.version, byte(a.code))
	return appendBody(dst, a.clusterID, a.raftID, a.text)
}

// appendBody appends the length and what follows it: cluster id, two strings.
func appendBody(dst []byte, clusterID [16]byte, a, b string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(clusterIDLength+2+len(a)+2+len(b)))
	dst = append(dst, clusterID[:]...)
	for _, s := range [...]string{a, b} {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
		dst = append(dst, s...)
	}
	return dst
}

// readHandshake reads one hello or answer, and no byte more. What follows the
// head is read for any version, and left out of the result if it is not ours.
func readHandshake(r io.Reader) (version, second uint8, clusterID [16]byte, a, b string, err error) {
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
	if n < clusterIDLength {
		err = fmt.Errorf("%w: %d bytes are too few", errHandshake, n)
		return
	}
	copy(clusterID[:], body)
	body = body[clusterIDLength:]
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
	h.version, h.purpose, h.clusterID, h.raftID, h.expect, err = readHandshake(r)
	if err == nil && h.version == peerVersion {
		err = checkRaftID(h.raftID)
	}
	return h, err
}

func readAnswer(r io.Reader) (a answer, err error) {
	var code uint8
	a.version, code, a.clusterID, a.raftID, a.text, err = readHandshake(r)
	a.code = refusalCode(code)
	if err == nil && a.version == peerVersion {
		err = checkRaftID(a.raftID)
	}
	return a, err
}

// answer makes the listener's half of the handshake.
func (p *peers) answer(conn net.Conn) (hello, error) {
	h, err := readHello(conn)
	if err != nil {
		if !errors.Is(err, io.EOF) && p.ctx.Err() == nil {
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			p.log.warn("hello "+host, "a connection to the peer port is no peer", "remote", conn.RemoteAddr(), "error", err)
		}
		return h, err
	}
	ref := p.check(h)
	a := answer{version: peerVersion, clusterID: p.cfg.ClusterID(), raftID: p.cfg.RaftID}
	if ref != nil {
		a.code, a.text = ref.code, ref.text[:min(len(ref.text), maxRefusalText)]
		if ref.code != refusedNotReady {
			p.log.warn(fmt.Sprintf("in %s %d", h.raftID, ref.code), "refused a peer", "peer", h.raftID, "remote", conn.RemoteAddr(), "reason", ref.text)
		}
	}
	if _, err := conn.Write(appendAnswer(nil, a)); err != nil {
		return h, err
	}
	if ref != nil {
		return h, ref
	}
	return h, nil
}

// check is the listener's judgement of a dialer; nil: welcome.
func (p *peers) check(h hello) *refusal {
	self := p.cfg.RaftID
	no := func(code refusalCode, format string, args ...any) *refusal {
		return &refusal{code: code, text: fmt.Sprintf(format, args...), raftID: h.raftID, local: true}
	}
	if h.version != peerVersion {
		return no(refusedVersion, "peer protocol version %d meets version %d of %s: upgrade in smaller steps, one release after the other", h.version, peerVersion, self)
	}
	if h.purpose != purposeRaft && h.purpose != purposeRPC {
		return no(refusedPurpose, "unknown purpose %d of a peer connection", h.purpose)
	}
	if h.raftID == self {
		return no(refusedSelf, "both ends have raft id %s: a node's peer address is listed for another node, or its data directory was copied", self)
	}
	if h.expect != "" && h.expect != self {
		return no(refusedReceiver, "%s", wrongReceiver(h.expect, self))
	}
	if text := otherCluster(h.raftID, h.clusterID, self, p.cfg.ClusterID()); text != "" {
		return no(refusedCluster, "%s", text)
	}
	if ok, conflict := p.cfg.Known(h.raftID); !ok && conflict != "" {
		return no(refusedStranger, "%s", stranger(h.raftID, conflict))
	}
	if h.purpose == purposeRaft && !p.raft.ready() {
		return no(refusedNotReady, "raft does not run on %s yet", self)
	}
	return nil
}

// introduce makes the dialer's half of the handshake.
func (p *peers) introduce(conn net.Conn, addr string, purpose uint8) error {
	h := hello{version: peerVersion, purpose: purpose, clusterID: p.cfg.ClusterID(), raftID: p.cfg.RaftID, expect: p.cfg.Lookup(addr)}
	if _, err := conn.Write(appendHello(nil, h)); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	a, err := readAnswer(conn)
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	ref := p.checkAnswer(h, a)
	if ref == nil {
		return nil
	}
	if ref.code != refusedNotReady {
		p.log.warn(fmt.Sprintf("out %s %d", addr, ref.code), "no connection to a peer", "address", addr, "reason", ref.Error())
	}
	return ref
}

// checkAnswer is the dialer's judgement; it does not rely on the listener's.
func (p *peers) checkAnswer(h hello, a answer) *refusal {
	no := func(code refusalCode, text string) *refusal {
		return &refusal{code: code, text: text, raftID: a.raftID, local: true}
	}
	switch {
	case a.version != peerVersion:
		return no(refusedVersion, fmt.Sprintf("it speaks peer protocol version %d, this node version %d: upgrade in smaller steps, one release after the other", a.version, peerVersion))
	case a.code != handshakeOK:
		return &refusal{code: a.code, text: a.text, raftID: a.raftID}
	case h.expect != "" && a.raftID != h.expect:
		return no(refusedReceiver, wrongReceiver(h.expect, a.raftID))
	case a.raftID == h.raftID:
		return no(refusedSelf, "it has this node's raft id "+h.raftID)
	}
	if text := otherCluster(a.raftID, a.clusterID, h.raftID, h.clusterID); text != "" {
		return no(refusedCluster, text)
	}
	if ok, conflict := p.cfg.Known(a.raftID); !ok && conflict != "" {
		return no(refusedStranger, stranger(a.raftID, conflict))
	}
	return nil
}

// otherCluster says what is wrong if the two have different cluster ids. A node
// without one (fresh, or not caught up) fits to any cluster: its raft id decides.
func otherCluster(a string, aID [16]byte, b string, bID [16]byte) string {
	if aID == bID || aID == [16]byte{} || bID == [16]byte{} {
		return ""
	}
	return fmt.Sprintf("%s is of cluster %s, %s of cluster %s: correct the peer addresses; a data directory of another cluster must be removed, then the node joined",
		a, hex.EncodeToString(aID[:]), b, hex.EncodeToString(bID[:]))
}

// wrongReceiver says what is wrong if got answers where want was expected.
func wrongReceiver(want, got string) string {
	if nodeID(want) == nodeID(got) {
		return fmt.Sprintf("the member here is %s, but %s answers: its data directory is new. %s", want, got, replaceMember(want))
	}
	return fmt.Sprintf("the member here is %s, but %s answers: correct the peer addresses in the configuration", want, got)
}

// stranger says what is wrong with a raft id whose node id is a member's.
func stranger(raftID, member string) string {
	return fmt.Sprintf("%s is no member, but %s is: the data directory of %s is new. %s", raftID, member, nodeID(raftID), replaceMember(member))
}

func replaceMember(old string) string {
	return fmt.Sprintf("Put the old data directory back, or remove member %s from the cluster and start the node with --join", old)
}

// checkRaftID refuses what cannot be a raft id: it goes into logs and answers.
func checkRaftID(id string) error {
	if id == "" || len(id) > maxRaftID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: raft id %.40q: 1 to %d printable ASCII characters are allowed", errHandshake, id, maxRaftID)
	}
	return nil
}
