// Package mutant switches on known defects, so that the checkers of the fault lab can
// be checked: one that reports none of them sees nothing.
//
// A binary that is built with the tag `mutant` has the one defect that the environment
// variable LIMITD_MUTANT names, and none if it is empty. Without the tag [On] is the
// constant false, and the compiler leaves the defect out: no branch, no cost, and
// nothing that an environment could switch.
//
// A defect is a line, or as few as show it, where the rule stands that it breaks:
//
//	name                         what is wrong                                             breaks
//	ack-before-commit            answers go out before the entry is proposed               P2
//	nosync                       new entries are synced to disk every 32nd time only       P2
//	local-clock-in-apply         applying an entry reads this node's wall clock            P5: replicas differ in T
//	no-clamp-of-t                a leader stamps its wall clock; T goes back with it       P5
//	last-not-in-snapshot         a snapshot forgets the last batch that took effect        P1: the guard is blind, replicas differ
//	snapshot-without-last-entry  a snapshot says it holds one entry more than it does      P1, P2: that entry is lost
//	tat-rounded-to-ms            the theoretical arrival time is cut to milliseconds       P1, P6
//	ge-at-burst-edge             a charge that just fits is denied                         P6: a denial, and nothing to wait for
//	refund-twice                 units given back count twice                              P1
//	void-batch-applied           a batch decided on an old state takes effect; so that     P1
//	                             there are such, a leader does not wait for its barrier
//	indoubt-as-refused           who may have been charged is told that he was not         P7
//	denial-out-of-touch          a follower cut off goes on to deny from what it knew      P3
//	transfer-without-guard       leadership is handed to anyone, at any time, and nobody   P7
//	                             looks whether raft goes on afterwards
//	takeall-partial              a denied call of several limits keeps the charges of the  P4
//	                             limits before the one that denied
//	id-not-kept                  what is charged under an ID is not remembered             P7: a repeated call is charged again
//	refund-id-twice              what was charged under an ID may be given back again      P1
package mutant
