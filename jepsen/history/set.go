package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"limitd/trace"
)

// writeSet writes set.edn: each charge adds its tag to a set, and at the end each
// member of the cluster is read for the tags whose charges its state comes from.
// Jepsen's checkers set (which looks at the last read) and set-full (at all) so say
// whether an acknowledged charge was lost, or one was made that nobody asked for.
func writeSet(dir string, events []Event) error {
	var members struct{ Members []string } // of run.json; without one there was no end to read
	if err := ReadJSON(dir, RunFile, &members); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	a, err := readAudit(dir, members.Members)
	if err != nil {
		return err
	}
	var text []string
	for _, e := range asked(events) {
		if addsTo(e.Cmd) {
			text = append(text, settle(e).operation(":add", strconv.FormatUint(e.Tag, 10)))
		}
	}
	highest, last := 0, Event{}
	for _, e := range events {
		highest, last = max(highest, e.Process), e
	}
	for i, node := range members.Members {
		tags, ok := a.tags(node)
		if !ok {
			continue
		}
		words := make([]string, len(tags))
		for j, tag := range tags {
			words[j] = strconv.FormatUint(tag, 10)
		}
		last.Process, last.Error = highest+1+i, ""
		last.Type, last.Index = Invoke, last.Index+1
		text = append(text, last.operation(":read", "nil"))
		last.Type, last.Index = OK, last.Index+1
		text = append(text, last.operation(":read", "#{"+strings.Join(words, " ")+"}"))
	}
	return writeText(filepath.Join(dir, SetFile), text)
}

// audit is what the nodes' traces say about charges.
type audit struct {
	before  map[string]string   // by chain: the chain before the entry
	digest  map[string]string   // by chain: of the entry
	charged map[string][]uint64 // by digest: tags of the charges in the entry
	newest  map[string]string   // by node: the chain of its last state
}

func readAudit(dir string, nodes []string) (*audit, error) {
	a := &audit{map[string]string{}, map[string]string{}, map[string][]uint64{}, map[string]string{}}
	files, err := filepath.Glob(TraceFile(dir, "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		node := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		chain := trace.Hash(0)
		err := trace.Read(file, func(r trace.Row) error {
			switch r.Kind {
			case trace.Start:
				chain = trace.Hash(0)
			case trace.Restored:
				chain = r.Chain
			case trace.Applied:
				if r.Chain != chain {
					a.before[r.Chain] = chain
					a.digest[r.Chain] = r.Digest
				}
				chain = r.Chain
			case trace.Round:
				a.round(r)
			}
			a.newest[node] = chain
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, n := range nodes {
		if _, ok := a.newest[n]; !ok && len(files) > 0 {
			return nil, fmt.Errorf("%s: %w", TraceFile(dir, n), os.ErrNotExist)
		}
	}
	return a, nil
}

func (a *audit) round(r trace.Row) {
	for _, c := range r.Calls {
		several := slices.ContainsFunc(c.Parts, func(p trace.Part) bool { return p.Cost > 0 })
		if c.Tag != 0 && c.Allowed && !c.Peek && c.ID == "" && (c.Op == "take" && c.Cost > 0 || c.Op == "takeall" && several) {
			a.charged[r.Digest] = append(a.charged[r.Digest], c.Tag)
		}
	}
}

// tags are those whose charges the node's last state comes from, ascending. A chain
// hash stands for a state and all that led to it, so the way back goes from hash to
// hash, over the rows of other nodes where this one was given a snapshot.
func (a *audit) tags(node string) ([]uint64, bool) {
	chain, ok := a.newest[node]
	var all []uint64
	for steps := 0; steps <= len(a.before); steps++ {
		all = append(all, a.charged[a.digest[chain]]...)
		before, more := a.before[chain]
		if !more {
			break
		}
		chain = before
	}
	slices.Sort(all)
	return slices.Compact(all), ok
}
