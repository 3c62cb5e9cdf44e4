// Package history is what a run leaves behind for its checkers: what clients
// asked and were told, what was done to the nodes, and where each file lies.
//
// A run directory holds run.json ([Run]), history.jsonl ([Event] lines: client
// operations and nemeses), health.jsonl ([Health] lines), samples.jsonl
// ([Sample] lines), schedule.jsonl, trace/<node>.jsonl (package trace),
// log/<node>.log, and what is made of them: verdict.json, history.edn,
// set.edn, counter/*.edn, report.html and porcupine/*.html. FORMAT.md describes the
// lines.
package history

// Type of an event, as Jepsen names them.
type Type string

const (
	Invoke Type = "invoke" // a call was sent
	OK     Type = "ok"     // it was answered: allowed, denied, or whatever the command says
	Fail   Type = "fail"   // it was certainly not charged
	Info   Type = "info"   // it was perhaps charged; also: what a nemesis did
)

// Nemesis is the process number of events that are no client's.
const Nemesis = -1

// Event is one line of history.jsonl. Time is ns since the run began, by the
// harness's monotonic clock. A process has one operation open at a time; after an
// info its number is used no more (the worker goes on as process + concurrency).
type Event struct {
	Index   int      `json:"index"`
	Type    Type     `json:"type"`
	Process int      `json:"process"`
	Time    int64    `json:"time"`
	F       string   `json:"f"`              // the operation's name in the workload's table; of a nemesis its name
	Tag     uint64   `json:"tag,omitempty"`  // of the operation, unique in the run; its invoke and its completion carry it
	Node    string   `json:"node,omitempty"` // asked
	NS      int      `json:"ns,omitempty"`   // namespace of the connection
	Key     string   `json:"key,omitempty"`
	Cmd     []string `json:"cmd,omitempty"`   // invoke: the command as sent
	Reply   any      `json:"reply,omitempty"` // ok: integers, strings, arrays of them (numbers are JSON integers)
	Error   string   `json:"error,omitempty"` // fail, info: what was answered or what broke

	Phase   string   `json:"phase,omitempty"`   // nemesis: start or stop
	Targets []string `json:"targets,omitempty"` // nemesis: nodes
	Detail  string   `json:"detail,omitempty"`  // nemesis: for people
}

// Health says from Time on (until the next line) what works: the truth that the
// lab knows, for the check of availability and for nothing else.
type Health struct {
	Time  int64                 `json:"time"`
	Nodes map[string]NodeHealth `json:"nodes"`
}

// NodeHealth of a node. Peers are those with which packets go both ways, without
// delay or loss that a test of availability must allow for.
type NodeHealth struct {
	Voter  bool     `json:"voter"`
	Up     bool     `json:"up"`     // runs, is not paused, has its share of the processor
	Disk   bool     `json:"disk"`   // whole, not full, not slow
	Client bool     `json:"client"` // clients reach it
	Peers  []string `json:"peers"`
}

// Sample is what a node said of itself in INFO, now and then, for the report.
type Sample struct {
	Time      int64  `json:"time"`
	Node      string `json:"node"`
	Role      string `json:"role"`
	Term      uint64 `json:"term"`
	ClusterNS int64  `json:"cluster_ns"` // cluster time minus harness time, ns
}

// Run is run.json.
type Run struct {
	Seed        uint64            `json:"seed"`
	Profile     string            `json:"profile"`
	Nemeses     []string          `json:"nemeses"`
	Commit      string            `json:"commit"`
	Previous    string            `json:"previous,omitempty"` // the commit whose binary nodes are upgraded from
	Mode        string            `json:"mode"`               // netns or proxy
	Skipped     []string          `json:"skipped,omitempty"`  // what this machine could not do
	Nodes       []string          `json:"nodes"`
	Members     []string          `json:"members"`             // at the end, all of them running
	HeartbeatNS int64             `json:"heartbeat_ns"`        // of the nodes
	IDTTLNS     int64             `json:"id_ttl_ns,omitempty"` // for how long they remember an ID; 0: 60 s
	Started     string            `json:"started"`             // RFC 3339
	Duration    int64             `json:"duration"`            // ns
	Settings    string            `json:"settings"`            // of the nodes' configuration, TOML
	Replay      string            `json:"replay"`              // the line that does it again
	Unsettled   []string          `json:"unsettled,omitempty"` // what did not come back after a fault was healed
	Gates       map[string]int64  `json:"gates"`               // least counts that make the run worth a verdict: see package check
	Tools       map[string]string `json:"tools,omitempty"`
}
