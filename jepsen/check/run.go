package check

import (
	"fmt"

	"limitd/jepsen/history"
)

// check is one invariant.
type check struct {
	name, promise, says string
	run                 func(*evidence, *result)
}

// checks in the order in which they are worth reading: a run whose first ones fail
// says little about the later ones.
var checks = []check{
	{"gates", "all", "the run did enough of what it is for to be worth a verdict", checkGates},
	{"logs", "all", "no node panicked, raced, or diverged", checkLogs},
	{"replicas", "P5", "every node applied the same entries to the same effect at the same index, and every snapshot is the state that the log makes", checkReplicas},
	{"durability", "P2", "what was acknowledged took effect, and every node has it at the end", checkDurability},
	{"all-or-none", "P4", "of a call that names several limits all are charged or none, in one entry", checkAllOrNone},
	{"ids", "P7", "what is asked under one ID, however often, is charged once and given back once", checkIDs},
	{"in-doubt", "P7", "what failed was not charged, and what is in doubt was charged at most once", checkInDoubt},
	{"monotone", "P5", "decisions never go back in time, and cluster time moves by elapsed time alone", checkMonotone},
	{"witness", "P1, P3, P6", "in the order of their rounds, all decisions are what the rules say, and clients were told them", checkWitness},
	{"over-admission", "P1", "per key and limit, no interval of cluster time admits more than the limit says, refunds netted, resets excepted", checkOverAdmission},
	{"over-admission-wall", "P1", "per key and limit, what clients saw admitted in an interval of their time is no more than the limit says, refunds netted, resets excepted", checkOverAdmissionWall},
	{"retry-after", "P6", "who waits as long as a denial says is admitted, if nobody else is, and who does not is denied", checkRetryAfter},
	{"local-denials", "P3", "what a node answered alone was true: of a state no older, and a time no later, than promised", checkLocalDenials},
	{"porcupine", "P1", "what clients saw of a key is linearizable, whatever the traces say", checkPorcupine},
	{"availability", "P7", "with a healthy majority there is service, and without one an answer in bounded time", checkAvailability},
}

// examplesKept bounds the counter-examples of a check.
const examplesKept = 10

// result is a check at work.
type result struct {
	Result
	found   int64 // counter-examples
	unknown int64
}

// bad notes a counter-example.
func (r *result) bad(x Example) {
	r.found++
	if len(r.Examples) < examplesKept {
		r.Examples = append(r.Examples, x)
	}
}

// open notes what could not be decided.
func (r *result) open(x Example) {
	r.unknown++
	if len(r.Examples) < examplesKept {
		r.Examples = append(r.Examples, x)
	}
}

// figure notes a number.
func (r *result) figure(name string, n int64) {
	if r.Figures == nil {
		r.Figures = map[string]int64{}
	}
	r.Figures[name] = n
}

// status is what was found: nothing looked at is nothing shown.
func (r *result) status() Status {
	switch {
	case r.found > 0:
		return Invalid
	case r.unknown > 0 || r.Checked == 0:
		return Unknown
	}
	return Valid
}

// Run judges the run in dir and writes verdict.json there, and porcupine's pictures of
// keys that it refutes. An error says that the run cannot be read.
func Run(dir string) (Verdict, error) {
	e, err := load(dir)
	if err != nil {
		return Verdict{}, fmt.Errorf("check: %w", err)
	}
	v := Verdict{Status: Valid, Figures: e.figures()}
	for _, c := range checks {
		r := &result{Result: Result{Name: c.name, Promise: c.promise, Says: c.says}}
		c.run(e, r)
		r.Status = r.status()
		r.figure("found", r.found)
		v.Checks = append(v.Checks, r.Result)
		v.Status = worse(v.Status, r.Status)
	}
	if err := history.WriteJSON(dir, history.VerdictFile, v); err != nil {
		return Verdict{}, fmt.Errorf("check: %w", err)
	}
	return v, nil
}

// worse of two.
func worse(a, b Status) Status {
	rank := map[Status]int{Valid: 0, Unknown: 1, Invalid: 2}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
