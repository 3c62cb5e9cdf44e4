package cluster

// lineage is this node's: that of the applied state or, before that is loaded, of
// the snapshot file.
func (n *Node) lineage() lineage {
	h := n.fsm.State().Header
	if h.ClusterID == [16]byte{} {
		m, _ := n.snapshots().Meta()
		h = m.Header
	}
	return lineage{h.ClusterID, h.Generation}
}
