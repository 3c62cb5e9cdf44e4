package resp

import (
	"fmt"

	"github.com/tidwall/redcon"
)

// role says master on every node, because every node takes every command and
// some clients refuse nodes that say otherwise. INFO's Raft section has the truth.
func role(c *client, dst []byte, _ [][]byte) []byte {
	dst = redcon.AppendArray(dst, 3)
	dst = redcon.AppendBulkString(dst, "master")
	dst = redcon.AppendInt(dst, int64(c.srv.admin.Status().Applied))
	return redcon.AppendArray(dst, 0)
}

// clock is TIME: the date by cluster time and calendar offset, as two strings.
func clock(c *client, dst []byte, _ [][]byte) []byte {
	st := c.srv.admin.Status()
	us := (st.Time + st.Offset) / 1000
	dst = redcon.AppendArray(dst, 2)
	dst = redcon.AppendBulkInt(dst, us/1e6)
	return redcon.AppendBulkInt(dst, us%1e6)
}

// wait is WAIT numreplicas timeout. What was answered is on disk at a majority,
// so the answer is known without waiting: the other nodes of the smallest one.
func wait(c *client, dst []byte, args [][]byte) []byte {
	if _, ok := parseInt(args[1]); !ok {
		return redcon.AppendError(dst, errInteger)
	}
	switch timeout, ok := parseInt(args[2]); {
	case !ok:
		return redcon.AppendError(dst, "ERR timeout is not an integer or out of range")
	case timeout < 0:
		return redcon.AppendError(dst, "ERR timeout is negative")
	}
	return redcon.AppendInt(dst, int64(c.srv.admin.Status().Voters/2))
}

// rlTime is RL.TIME: cluster time, calendar offset and cluster time minus the
// wall clock in ms, term, leader id.
func rlTime(c *client, dst []byte, _ [][]byte) []byte {
	st := c.srv.admin.Status()
	dst = redcon.AppendArray(dst, 5)
	dst = redcon.AppendInt(dst, ceilMS(st.Time))
	dst = redcon.AppendInt(dst, ceilMS(st.Offset))
	dst = redcon.AppendInt(dst, ceilMS(st.WallOffset))
	dst = redcon.AppendInt(dst, int64(st.Term))
	return redcon.AppendBulkString(dst, st.LeaderID)
}

func clusterNodes(c *client, dst []byte, _ [][]byte) []byte {
	nodes := c.srv.admin.Nodes()
	dst = redcon.AppendArray(dst, len(nodes))
	for _, n := range nodes {
		dst = redcon.AppendArray(dst, 16)
		dst = appendPair(dst, "id", n.ID)
		dst = appendPair(dst, "raft_id", n.RaftID)
		dst = appendPair(dst, "resp", n.Resp)
		dst = appendPair(dst, "peer", n.Peer)
		dst = appendPair(dst, "role", n.Role)
		dst = appendIntPair(dst, "contact_ms", n.ContactMS)
		dst = appendIntPair(dst, "applied", int64(n.Applied))
		dst = appendPair(dst, "version", n.Version)
	}
	return dst
}

func clusterStatus(c *client, dst []byte, _ [][]byte) []byte {
	st := c.srv.admin.Status()
	dst = redcon.AppendArray(dst, 2*18)
	dst = appendPair(dst, "id", st.ID)
	dst = appendPair(dst, "raft_id", st.RaftID)
	dst = appendPair(dst, "role", st.Role)
	dst = appendPair(dst, "leader_id", st.LeaderID)
	dst = appendPair(dst, "leader_addr", st.LeaderAddr)
	dst = appendPair(dst, "cluster_id", st.ClusterID)
	dst = appendIntPair(dst, "generation", int64(st.Generation))
	dst = appendIntPair(dst, "term", int64(st.Term))
	dst = appendIntPair(dst, "commit_index", int64(st.Commit))
	dst = appendIntPair(dst, "applied_index", int64(st.Applied))
	dst = appendIntPair(dst, "last_batch", int64(st.Last))
	dst = appendIntPair(dst, "at_ms", ceilMS(st.Time))
	dst = appendIntPair(dst, "offset_ms", ceilMS(st.Offset))
	dst = appendIntPair(dst, "wall_offset_ms", ceilMS(st.WallOffset))
	dst = appendIntPair(dst, "voters", int64(st.Voters))
	dst = appendIntPair(dst, "disk_free", st.DiskFree)
	dst = appendIntPair(dst, "writes_entry", int64(st.WritesEntry))
	return appendIntPair(dst, "ready", int64(oneIf(st.Ready)))
}

func rlHash(c *client, dst []byte, _ [][]byte) []byte {
	points := c.srv.admin.Hashes()
	dst = redcon.AppendArray(dst, len(points))
	for _, p := range points {
		dst = redcon.AppendArray(dst, 2)
		dst = redcon.AppendInt(dst, int64(p.Index))
		dst = redcon.AppendBulkString(dst, fmt.Sprintf("%016x", p.Hash))
	}
	return dst
}

func snapshotSave(c *client, dst []byte, _ [][]byte) []byte {
	path, err := c.srv.admin.SaveSnapshot()
	if err != nil {
		return redcon.AppendError(dst, "ERR no snapshot was saved: "+err.Error())
	}
	return redcon.AppendBulkString(dst, path)
}

func noCluster(_ *client, dst []byte, _ [][]byte) []byte {
	return redcon.AppendError(dst, "ERR This instance has cluster support disabled")
}

func noElements(_ *client, dst []byte, _ [][]byte) []byte { return redcon.AppendArray(dst, 0) }
func zero(_ *client, dst []byte, _ [][]byte) []byte       { return redcon.AppendInt(dst, 0) }
func done(_ *client, dst []byte, _ [][]byte) []byte       { return redcon.AppendOK(dst) }

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
