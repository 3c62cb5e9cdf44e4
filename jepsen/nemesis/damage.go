package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"limitd/jepsen/lab"
)

// A node must find out that its files are not what it left, at the latest when it needs
// what is gone, and then say how it is mended: that is the operator's.
var damages = []Nemesis{
	{"damage-flip", "a bit of a file that is served as it stands", Nodes, nil, damaging("flip")},
	{"damage-truncate", "the end of a file that nobody misses", Nodes, nil, damaging("truncate")},
	{"damage-zero", "a page of a file that was never written, and is taken for empty", Nodes, nil, damaging("zero")},
	{"damage-remove", "a file that is made again, empty", Nodes, nil, damaging("remove")},
	{"damage-old", "an old copy of a file, whole in itself, that has forgotten a vote", Nodes, nil, damaging("old")},
}

// files of a data directory that are damaged, the ones that matter most more often.
var files = []string{"raft.db", "raft.db", "raft.db", "snapshot.db", "snapshot.db", "identity"}

func damaging(how string) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		id, file, seed := e.victim(), files[e.Rand.IntN(len(files))], e.Rand.Uint64()
		if how == "old" {
			file = files[e.Rand.IntN(5)]
		}
		if !e.Roster.damage(id) {
			return nil // another one is damaged already and may not know it yet
		}
		return e.during([]string{id}, fmt.Sprintf("%s: %s", file, how), func() error {
			n := e.Lab.Node(id)
			if err := n.Kill(); err != nil {
				return err
			}
			file := ofStore(n.Data(), file, seed)
			var err error
			if how == "old" {
				err = e.putBack(ctx, n, file)
			} else {
				err = n.Damage(lab.Damage{File: file, How: how, Seed: seed})
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			e.wait(ctx, 0, time.Second)
			if err := e.start(id); err != nil {
				return err
			}
			e.wait(ctx, time.Second, 3*time.Second)
			return nil
		})
	}
}

// ofStore is what a node keeps its log in, if file is raft.db and it has another store:
// the file that names the segments, or one of them.
func ofStore(data, file string, seed uint64) string {
	names, _ := filepath.Glob(filepath.Join(data, "raft.wal", "*.*")) // and not the spare segment
	if file != "raft.db" || len(names) == 0 {
		return file
	}
	file, _ = filepath.Rel(data, names[seed%uint64(len(names))])
	return file
}

// putBack lets a node run on for a while, and replaces a file by what it was before.
func (e *Env) putBack(ctx context.Context, n lab.Node, file string) error {
	path := filepath.Join(n.Data(), file)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := e.start(n.ID()); err != nil {
		return err
	}
	e.wait(ctx, time.Second, 4*time.Second)
	if err := n.Kill(); err != nil {
		return err
	}
	return os.WriteFile(path, old, 0o600)
}
