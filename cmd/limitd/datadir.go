package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// nodeIDFile keeps the id of a node that runs without a configuration file.
const nodeIDFile = "node-id"

// nodeID returns the id that dir belongs to. A new directory takes asked, or
// "n-" and six random hex digits if asked is empty.
func nodeID(dir, asked string) (string, error) {
	file := filepath.Join(dir, nodeIDFile)
	kept, err := os.ReadFile(file)
	switch {
	case err == nil:
		id := strings.TrimSpace(string(kept))
		if err := checkNodeID(id); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if asked != "" && asked != id {
			return "", fmt.Errorf("--node %s: %s belongs to node %s", asked, dir, id)
		}
		return id, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("read node id: %w", err)
	}
	id := asked
	if id == "" {
		var b [3]byte
		rand.Read(b[:]) // never fails
		id = "n-" + hex.EncodeToString(b[:])
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	if err := writeNew(file, id+"\n"); err != nil {
		return "", fmt.Errorf("keep node id: %w", err)
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
