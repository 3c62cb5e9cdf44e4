package history

// LedgerFile is the soak's ledger: one [SoakRun] a line, appended when the run is over.
const LedgerFile = "soak.jsonl"

// SoakRun is one run of a soak.
type SoakRun struct {
	Seed          uint64             `json:"seed"`
	Profile       string             `json:"profile"`
	Nodes         int                `json:"nodes"` // voters at the start
	Commit        string             `json:"commit"`
	Mode          string             `json:"mode"`
	Started       string             `json:"started"`          // RFC 3339
	Duration      int64              `json:"duration"`         // ns
	Verdict       string             `json:"verdict"`          // valid, invalid, unknown
	Failed        []string           `json:"failed,omitempty"` // names of the checks that are not valid
	Operations    int64              `json:"operations"`
	LeaderChanges int64              `json:"leader_changes"`
	Faults        map[string]int64   `json:"faults"`        // how many, by kind of nemesis
	NoService     map[string][]int64 `json:"no_service"`    // by kind of nemesis, for each fault: the longest time around it in which nothing was admitted, ns
	Dir           string             `json:"dir,omitempty"` // run directory beside the ledger, if it was kept
}

// ReadLedger reads the ledger in dir.
func ReadLedger(dir string) ([]SoakRun, error) { return readLines[SoakRun](dir, LedgerFile) }
