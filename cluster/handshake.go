package cluster

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
)

// The handshake is the first exchange of every peer connection, before anything
// else is read: hello from the dialer, answer from the listener (peers_hello.go).
// Each side checks the other, so that a node of another cluster, a mistaken
// address and a disk that was wiped show at once, with what to do about them.

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
	if p.cfg.Hello != nil {
		p.cfg.Hello(h)
	}
	ref := p.check(h)
	a := answer{version: peerVersion, of: p.cfg.Lineage(), raftID: p.cfg.RaftID}
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
	own := p.cfg.Lineage()
	if text := otherGeneration(h.raftID, h.of, self, own); text != "" { // it also explains the raft ids that do not match
		return no(refusedGeneration, "%s", text)
	}
	if h.expect != "" && h.expect != self {
		return no(refusedReceiver, "%s", wrongReceiver(h.expect, self))
	}
	if text := otherCluster(h.raftID, h.of, self, own); text != "" {
		return no(refusedCluster, "%s", text)
	}
	// One that knows the cluster is no wiped disk: it was a member before, and shall
	// hear that it is none any more; or it is one now, and this node lags behind.
	if ok, conflict := p.cfg.Known(h.raftID); !ok && conflict != "" && h.of.cluster == [16]byte{} {
		return no(refusedStranger, "%s", stranger(h.raftID, conflict))
	}
	if h.purpose == purposeRaft && !p.raft.ready() {
		return no(refusedNotReady, "raft does not run on %s yet", self)
	}
	return nil
}

// introduce makes the dialer's half of the handshake.
func (p *peers) introduce(conn net.Conn, addr, expect string, purpose uint8) error {
	h := hello{version: peerVersion, purpose: purpose, of: p.cfg.Lineage(), raftID: p.cfg.RaftID, expect: expect}
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
	}
	if text := otherGeneration(a.raftID, a.of, h.raftID, h.of); text != "" {
		return no(refusedGeneration, text)
	}
	switch {
	case h.expect != "" && a.raftID != h.expect:
		return no(refusedReceiver, wrongReceiver(h.expect, a.raftID))
	case a.raftID == h.raftID:
		return no(refusedSelf, "it has this node's raft id "+h.raftID)
	}
	if text := otherCluster(a.raftID, a.of, h.raftID, h.of); text != "" {
		return no(refusedCluster, text)
	}
	if ok, conflict := p.cfg.Known(a.raftID); !ok && conflict != "" && a.of.cluster == [16]byte{} { // as in check
		return no(refusedStranger, stranger(a.raftID, conflict))
	}
	return nil
}

// otherCluster says what is wrong if the two have different cluster ids. A node
// without one (fresh, or not caught up) fits to any cluster: its raft id decides.
func otherCluster(a string, of lineage, b string, bOf lineage) string {
	if of.cluster == bOf.cluster || of.cluster == [16]byte{} || bOf.cluster == [16]byte{} {
		return ""
	}
	return fmt.Sprintf("%s is of cluster %s, %s of cluster %s: correct the peer addresses; a data directory of another cluster must be removed, then the node joined",
		a, hex.EncodeToString(of.cluster[:]), b, hex.EncodeToString(bOf.cluster[:]))
}

// otherGeneration says what is wrong if the two are of one cluster that was
// recovered without one of them. That one's state has another history since.
func otherGeneration(a string, of lineage, b string, bOf lineage) string {
	if of.cluster != bOf.cluster || of.generation == bOf.generation || of.cluster == [16]byte{} {
		return ""
	}
	if of.generation > bOf.generation {
		a, of, b, bOf = b, bOf, a, of
	}
	return fmt.Sprintf("%s is of generation %d of the cluster, %s of generation %d: the cluster was recovered without %s (limitd recover). Stop %s, move its data directory away, and start it with --join",
		a, of.generation, b, bOf.generation, a, nodeID(a))
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
	return fmt.Sprintf("Put the old data directory back, or remove member %s from the cluster (limitd cluster remove %s) and start the node with --join", old, nodeID(old))
}
