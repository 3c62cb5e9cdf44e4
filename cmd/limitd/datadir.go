package main

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"limitd/cluster"
)

// nodeIDFile keeps the id of a node that runs without a configuration file.
const nodeIDFile = "node-id"

// nodeID returns the id that dir belongs to. A new directory takes asked, or
// "n-" and six random hex digits if asked is empty.
func nodeID(dir, asked string) (string, error) {
	id, err := keptNodeID(dir)
	switch {
	case err == nil && asked != "" && asked != id:
		return "", fmt.Errorf("--node %s: %s belongs to node %s", asked, dir, id)
	case err == nil || errors.Is(err, errWhose) && asked != "": // opening the node says more
		return cmp.Or(id, asked), nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if id = asked; id == "" {
		var b [3]byte
		rand.Read(b[:]) // never fails
		id = "n-" + hex.EncodeToString(b[:])
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	if err := writeNew(filepath.Join(dir, nodeIDFile), id+"\n"); err != nil {
		return "", fmt.Errorf("keep node id: %w", err)
	}
	return id, nil
}

// errWhose is for a directory with a node whose identity cannot be read.
var errWhose = errors.New("it is not known which node this is: say --node")

// keptNodeID is the id that dir belongs to, or an fs.ErrNotExist. A directory that
// was made with a configuration file, or restored, has only the node's identity.
func keptNodeID(dir string) (string, error) {
	file := filepath.Join(dir, nodeIDFile)
	kept, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dir); err != nil {
			return "", err
		}
		id, err := cluster.NodeOf(dir)
		switch {
		case errors.Is(err, cluster.ErrNoNode):
			err = fs.ErrNotExist
		case err != nil:
			err = fmt.Errorf("%w (%v)", errWhose, err)
		}
		return id, err
	}
	if err != nil {
		return "", fmt.Errorf("read node id: %w", err)
	}
	id := strings.TrimSpace(string(kept))
	if err := checkNodeID(id); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return id, nil
}

// writeNew writes a small file that is either there and whole after a crash, or not there.
func writeNew(file, text string) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename: no such file
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
