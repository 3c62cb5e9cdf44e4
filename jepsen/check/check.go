// Package check judges a run from its files alone. It knows nothing of how the
// run was made: not which faults were injected, not which binary ran.
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
