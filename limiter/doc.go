// Package limiter is what a decision is: it takes the calls of a connection,
// answers what this node may answer alone, and has the rest decided by the leader.
//
// A connection hands over a [Chunk]: calls to be decided in order and answered
// in order. [Limiter.Do] goes through three stages.
//
//  1. Alone (local.go). Calls at the front that the applied state already
//     denies are answered from memory: what is in flight can only consume, so
//     "denied" stays true. A node does so only while it is in touch with the
//     majority; a leader also answers reads that way.
//  2. Routed (route.go). From the first call that needs agreement on, the rest
//     goes to the leader as one piece: into the queue here, or as one frame to
//     the leader's node.
//  3. In a round (rounds.go). The leader takes what waits, reads the clock once,
//     runs package algo for each call in arrival order over the applied state
//     plus the round's own write set, and so knows every answer. The write set
//     is proposed as one entry: the new state of each record that changed, once,
//     however often it was hit. When the entry is committed and applied here,
//     the answers go out; then the next round starts. One batch is in flight.
//
// So the leader decides once and the cluster replicates effects, not commands:
// a changed rounding rule cannot make two nodes differ.
//
// Every answer says whether the call may have been charged ([Status]). A call
// that is certainly undecided is tried again until its time is over; one that
// was proposed is never proposed twice.
//
// limiter imports algo and fsm (which it only reads). What it needs of the
// cluster is in [Proposer] and [Router]. The frames between nodes are described
// in FORMAT.md.
package limiter
