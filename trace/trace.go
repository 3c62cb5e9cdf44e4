// Package trace is what a node that runs with `serve --trace FILE` writes down
// about its decisions, for checkers: which call was decided when, on what state,
// in which entry, and what was applied. Clients see none of it, and no reply
// changes.
//
// A client that wants to find its call again sends RL.TRACE <tag> before it, on
// the same connection; the tag goes with the call to the node that decides it.
//
// The file holds one JSON object a line, a [Row]. Each row is one write, so a
// killed process loses none that it began to act on. FORMAT.md describes the rows.
package trace

// Kind of a row.
type Kind string

const (
	Start    Kind = "start"    // a process begins
	Round    Kind = "round"    // a leader has decided a round; written before its entry is proposed
	Outcome  Kind = "outcome"  // what became of the round
	Local    Kind = "local"    // calls that this node answered alone
	Applied  Kind = "applied"  // an entry was applied (or was void)
	Restored Kind = "restored" // a snapshot has replaced the state: the node's own at its start, or one from the leader
)

// Row is one line of a trace. Which fields a kind has stands with them.
type Row struct {
	Kind Kind   `json:"kind"`
	Node string `json:"node"`
	Boot int64  `json:"boot"`          // CLOCK_BOOTTIME of the machine when the row was written, ns
	PID  int    `json:"pid,omitempty"` // Start

	Term   uint64 `json:"term,omitempty"`   // Round, Outcome; Applied: of the log entry
	Round  uint64 `json:"round,omitempty"`  // Round, Outcome: counts in one process, from 1
	Base   uint64 `json:"base,omitempty"`   // Round, Applied: the batch that it was decided on
	At     int64  `json:"at,omitempty"`     // Round, Applied: the time it was decided at; Local: the lower bound used. Cluster time, ns
	Digest string `json:"digest,omitempty"` // Round, Applied: of the entry's bytes, 16 hex digits; Round: empty if nothing was proposed

	Outcome string `json:"outcome,omitempty"` // Outcome: applied, void, refused, unknown, none (nothing was proposed); Applied: applied or void

	Index     uint64   `json:"index,omitempty"`   // Outcome: the entry's, if applied; Applied: the entry's; Restored: of the snapshot; Local: applied when the first of the calls was looked at
	Upto      uint64   `json:"upto,omitempty"`    // Local: applied after the last of them. Each was answered from the state after an entry of Index to Upto + 1, the one that was being applied
	Last      uint64   `json:"last,omitempty"`    // Applied, Restored: the last batch that took effect
	T         int64    `json:"t,omitempty"`       // Applied, Restored: cluster time, ns
	Chain     string   `json:"chain,omitempty"`   // Applied, Restored: the chain hash, 16 hex digits
	ClusterID string   `json:"cluster,omitempty"` // Restored
	Leading   bool     `json:"leading,omitempty"` // Local: the node led
	Calls     []Call   `json:"calls,omitempty"`   // Round: all, in the order decided; Local: those that carry a tag
	Effects   []Effect `json:"effects,omitempty"` // Applied
}

// Call is one call and its answer, exactly.
type Call struct {
	Tag uint64 `json:"tag,omitempty"`
	Op  string `json:"op"` // take, reset, exists, type, ttl, flush, flushall, takeall, list
	NS  uint8  `json:"ns,omitempty"`
	Key string `json:"key,omitempty"` // see Key

	More []string `json:"more,omitempty"` // reset, exists: further keys

	Algorithm uint8 `json:"algorithm,omitempty"` // take
	Interval  int64 `json:"interval,omitempty"`  // take: emission interval, ns
	Burst     int64 `json:"burst,omitempty"`     // take
	Cost      int64 `json:"cost,omitempty"`      // take

	ID       string `json:"id,omitempty"`       // take, takeall: see Key
	Repeated bool   `json:"repeated,omitempty"` // take, takeall: the answer is that of an earlier call with the ID; a refund was made before

	Limit string `json:"limit,omitempty"` // take: as an expression; of CL.THROTTLE none
	Peek  bool   `json:"peek,omitempty"`  // take, takeall: nothing was to be charged
	Parts []Part `json:"parts,omitempty"` // takeall

	Status    string `json:"status"` // ok, or the reason of a refusal
	Allowed   bool   `json:"allowed,omitempty"`
	Remaining int64  `json:"remaining,omitempty"`
	Retry     int64  `json:"retry,omitempty"` // ns; -1 never
	Reset     int64  `json:"reset,omitempty"` // ns
	Delay     int64  `json:"delay,omitempty"` // take: ns
	N         int64  `json:"n,omitempty"`     // the other ops; takeall: which part denied with the longest wait, -1: none
}

// Part is one limit of a takeall, and its answer.
type Part struct {
	Key       string `json:"key,omitempty"`
	Limit     string `json:"limit"`
	Cost      int64  `json:"cost,omitempty"`
	Allowed   bool   `json:"allowed,omitempty"`
	Remaining int64  `json:"remaining,omitempty"`
	Retry     int64  `json:"retry,omitempty"` // ns; -1 never
	Reset     int64  `json:"reset,omitempty"` // ns
	Delay     int64  `json:"delay,omitempty"` // ns
}

// Effect is what an entry did to one record.
type Effect struct {
	Op       string `json:"op"` // replace, splice, delete, clear, clearall, setcluster, setoffset
	NS       uint8  `json:"ns,omitempty"`
	Key      string `json:"key,omitempty"`
	Identity string `json:"identity,omitempty"` // hex
	State    string `json:"state,omitempty"`    // hex
	Drop     int    `json:"drop,omitempty"`     // splice: bytes in front that went
	Cut      int    `json:"cut,omitempty"`      // splice: and at the end
	Expiry   int64  `json:"expiry,omitempty"`   // cluster time, ns
}
