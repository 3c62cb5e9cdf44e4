package check

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"limitd/jepsen/history"
)

const (
	sampledKeys   = 12
	windowMost    = 250 // operations
	windowsMost   = 8   // of one key
	concurrent    = 8   // clients
	exactMost     = 1500
	exactParallel = 12
	patience      = 5 * time.Second // for one window
)

// checkPorcupine asks an independent checker of linearizability, for some keys, twice:
//
//	seen    windows of what clients were told, in whole seconds: is there any order of the operations, each within its [invoke, return], that a limiter can have answered so? (see [seen])
//	exact   the key's operations with the times and nanoseconds of their decisions, but not their order: is there one? (see [exact])
//
// The first one is asked of keys of CL.THROTTLE, the second one of all that are never named
// together with others, or under an ID.
// The keys are those with the most operations, and some drawn by the run's seed.
// Windows begin and end where no operation is open, and have at most 8 at once. A
// window that cannot be decided in time is unknown. The first one trusts clients, and
// the traces for nothing but how far cluster time lagged behind theirs; the second one
// trusts the traces for times.
func checkPorcupine(e *evidence, r *result) {
	byKey := map[key][]*op{}
	for _, o := range e.ops {
		if o.typ != history.Fail && o.verb != other && len(o.keys) == 1 && o.odd == "" {
			byKey[o.keys[0]] = append(byKey[o.keys[0]], o)
		}
	}
	asked := int64(0)
	for _, k := range e.sample(byKey) {
		if e.shared(k) {
			continue
		}
		var windows []window
		if ofThrottle(byKey[k]) {
			windows = e.windows(byKey[k])
		}
		for i, w := range windows {
			asked++
			e.ask(k, fmt.Sprintf("seen-%d", i), seenModel, e.seenOperations(w), r)
		}
		if ops := e.exactOperations(k); len(ops) > 0 {
			asked++
			e.ask(k, "exact", exactModel, ops, r)
		}
	}
	r.figure("windows", asked)
}

func keysOf[V any](m map[key]V) func(func(key) bool) {
	return func(yield func(key) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// sample draws keys.
func (e *evidence) sample(byKey map[key][]*op) []key {
	all := slices.SortedFunc(keysOf(byKey), func(a, b key) int {
		return cmp.Or(cmp.Compare(len(byKey[b]), len(byKey[a])), compareKeys(a, b))
	})
	n := min(len(all), sampledKeys/2)
	rest := all[n:]
	r := rand.New(rand.NewPCG(e.run.Seed, 4))
	r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return all[:min(len(all), sampledKeys)]
}

// shared says that an operation concerned the key together with others, or its whole
// namespace, or had an ID: then it cannot be looked at alone.
func (e *evidence) shared(k key) bool {
	for _, o := range e.ops {
		flushed := o.verb == flushAll || o.verb == flush && uint8(o.invoke.NS) == k.ns
		if o.typ != history.Fail && (flushed || (len(o.keys) > 1 || len(o.parts) > 1 || o.id != "") && slices.Contains(o.keys, k)) {
			return true
		}
	}
	return false
}

// ofThrottle says that no limit but that of CL.THROTTLE was asked of the key: the others
// say their times in ms, and have records that this model of what can be known has not.
func ofThrottle(ops []*op) bool {
	return !slices.ContainsFunc(ops, func(o *op) bool { return o.verb == take || o.verb == takeAll })
}

// ask porcupine, and draw its picture of what it refutes.
func (e *evidence) ask(k key, name string, model porcupine.Model, ops []porcupine.Operation, r *result) {
	r.Checked += int64(len(ops))
	x := Example{Key: k.String()}
	for _, o := range ops {
		if of := o.Metadata.(*op); of != nil {
			x.Events = append(x.Events, of.events()...)
		}
	}
	switch result := porcupine.CheckOperationsTimeout(model, ops, patience); result {
	case porcupine.Ok:
	case porcupine.Unknown:
		x.Says = fmt.Sprintf("%s: %d operations were not decided in %v", name, len(ops), patience)
		r.open(x)
	default:
		x.Says = fmt.Sprintf("%s: no order of these %d operations is a limiter's", name, len(ops))
		file := filepath.Join("porcupine", fileName(k)+"-"+name+".html")
		if err := draw(filepath.Join(e.dir, file), model, ops); err != nil {
			x.Says += "; no picture: " + err.Error()
		} else {
			x.Rows = []string{file}
		}
		r.bad(x)
	}
}

func draw(file string, model porcupine.Model, ops []porcupine.Operation) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	_, info := porcupine.CheckOperationsVerbose(model, ops, patience)
	return porcupine.VisualizePath(model, info, file)
}

func fileName(k key) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, k.String())
}

// window is a stretch of a key's operations, with those in doubt from before it.
type window struct {
	ops   []*op
	from  int64 // ns of the run
	first bool  // nothing was asked before it
	freed int64 // when capacity was given back before it, at the latest
}

// windows cuts a key's operations where none is open. Of those that are small enough
// some are kept, from all over the run.
func (e *evidence) windows(ops []*op) []window {
	var all []window
	var doubt []*op
	w := window{first: true, freed: math.MinInt64}
	freed := int64(math.MinInt64)
	open, most := []int64{}, 0
	flush := func() {
		if most <= concurrent && len(w.ops) > 1 {
			all = append(all, w)
		}
		w, most = window{ops: slices.Clone(doubt), freed: freed}, 0
	}
	known := 0
	for _, o := range ops {
		open = slices.DeleteFunc(open, func(t int64) bool { return t < o.from() })
		if len(open) == 0 && known >= windowMost/2 {
			flush()
			known = 0
		}
		if w.from == 0 && known == 0 {
			w.from = o.from()
		}
		w.ops = append(w.ops, o)
		if o.typ == history.OK {
			open = append(open, o.to())
			known++
		} else {
			doubt = append(doubt, o)
		}
		if o.verb == reset || o.verb == throttle && o.call.Cost < 0 {
			freed = max(freed, o.to())
		}
		most = max(most, len(open)+len(doubt))
		if known > windowMost {
			most = math.MaxInt // nowhere to cut: too large
		}
	}
	flush()
	if len(all) > windowsMost {
		r := rand.New(rand.NewPCG(e.run.Seed, 5))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:windowsMost]
	}
	return all
}
