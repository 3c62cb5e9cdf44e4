// Package check judges a run from its files alone. It knows nothing of how the
// run was made: not which faults were injected, not which binary ran.
//
// [Run] reads run.json, history.jsonl, health.jsonl, log/*.log and the nodes' traces,
// joins operations with decisions by their tags and decisions with entries by their
// digests, and puts fifteen questions to them. Each is a function checkX whose comment
// has the invariant as a formula, and what it trusts. They do not lean on one another
// in a circle: clients alone are trusted by over-admission-wall and the first half of
// porcupine; the traces' order and times are used by witness, over-admission and
// retry-after, and judged by monotone; the traces' entries are judged by replicas,
// durability and in-doubt.
//
// What a limiter must answer is said by package model, which shares nothing with the one
// that it judges. All arithmetic is in integers, and all passes are linear, or sort.
//
// Gates of run.json are least values of the verdict's figures: operations, ok, fail, info,
// admitted, denied, allowed_percent and denied_percent (of charges), refunds, resets,
// of_limits, of_several (answered under limit expressions, under several at once), with_id,
// lists, of_calendars, turned_over (calendar windows that ended between two charges),
// answered_alone, denied_alone, keys, rounds, entries, void, starts, restored, installed
// and leader_changes.
package check

// Status of a check.
type Status string

const (
	Valid   Status = "valid"
	Invalid Status = "invalid"
	Unknown Status = "unknown" // could not be decided: as bad as invalid
)

// Verdict is verdict.json.
type Verdict struct {
	Status  Status           `json:"status"` // the worst of the checks
	Checks  []Result         `json:"checks"`
	Figures map[string]int64 `json:"figures"` // operations, denials, leader changes, …
}

// Result of one check.
type Result struct {
	Name     string           `json:"name"`    // as over-admission, durability, …
	Promise  string           `json:"promise"` // P1 to P7
	Says     string           `json:"says"`    // the invariant in one sentence
	Status   Status           `json:"status"`
	Checked  int64            `json:"checked"`            // how many things it looked at; 0 is never valid
	Examples []Example        `json:"examples,omitempty"` // counter-examples, the first ones
	Figures  map[string]int64 `json:"figures,omitempty"`
}

// Example is a counter-example.
type Example struct {
	Says   string   `json:"says"`
	Key    string   `json:"key,omitempty"`
	Node   string   `json:"node,omitempty"`
	Events []int    `json:"events,omitempty"` // indexes in the history
	Rows   []string `json:"rows,omitempty"`   // lines of traces
}
