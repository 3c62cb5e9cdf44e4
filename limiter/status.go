package limiter

import (
	"strings"

	"limitd/mutant"
)

// Status is how a call ended.
type Status uint8

const (
	OK          Status = iota // answered
	TryAgain                  // undecided or void: certainly not charged
	InDoubt                   // proposed and not confirmed: perhaps charged
	ClusterDown               // no leader: certainly not charged
	Busy                      // the leader's queue is full: not charged
	OOM                       // memory or disk floor reached: not charged
	Loading                   // state is being loaded: not charged
	LogFull                   // a sliding log has as many entries as it may: not charged
	IDTaken                   // the ID was used for another call: not charged
	IDUnknown                 // nothing is known of the ID that a refund names: nothing was given back
	IDsFull                   // no more IDs can be remembered: not charged
	Upgrading                 // not all nodes read what this would write yet: not charged

	statuses // how many there are
)

var statusText = [statuses]string{
	OK:          "OK",
	TryAgain:    "TRYAGAIN not decided in time or leadership changed; certainly not charged, retry",
	InDoubt:     "INDOUBT proposed but not confirmed in time; perhaps charged, do not retry blindly",
	ClusterDown: "CLUSTERDOWN no leader is known or reachable; certainly not charged, retry shortly",
	Busy:        "BUSY the leader's queue is full (limits.max_queue_requests, limits.max_queue_bytes); not charged, retry later",
	OOM:         "OOM the leader is at limits.max_memory, or less than limits.min_free_disk is free on its disk or on the disks of too many voters; not charged, retry when there is room",
	LogFull:     "ERR the log of a key has limits.max_log_entries entries; not charged. Use a larger cost for several calls at once, sliding: in place of log:, or raise the bound",
	IDTaken:     "ERR ID was used for another call within limits.id_ttl; not charged. Give each call its own ID, and repeat a call with the same key, limit and COST",
	IDUnknown:   "ERR ID is not that of a charge of this key and limit within limits.id_ttl; nothing was given back",
	IDsFull:     "OOM limits.max_ids calls are remembered by their ID; not charged, retry when the oldest are forgotten (limits.id_ttl), or without an ID",
	Upgrading:   "ERR a log of more than 4096 entries gives back only when all members are known to read such a change; nothing was given back. Start the members that are away, upgrade those that run an older limitd, and repeat it",
	Loading:     "LOADING this node is loading its state; not charged, retry shortly",
}

// Code is the first word of the text, in lower case; "ok" of an answer.
func (s Status) Code() string {
	code, _, _ := strings.Cut(s.Error(), " ")
	return strings.ToLower(code)
}

// Error is the text of a status that is no answer, as it goes to the client:
// code, blank, reason.
func (s Status) Error() string {
	if mutant.On("indoubt-as-refused") && s == InDoubt {
		s = TryAgain
	}
	if s < statuses {
		return statusText[s]
	}
	return "ERR unknown status"
}
