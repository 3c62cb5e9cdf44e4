package lab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

func (n *node) Wipe() error {
	if n.Running() {
		return fmt.Errorf("%s runs: its disk is not wiped", n.id)
	}
	if n.disk != nil {
		if err := n.disk.back(); err != nil {
			return err
		}
	}
	return os.RemoveAll(n.Data())
}

// Damage changes a file of the data directory as d says. A file that is not there
// is an error.
func (n *node) Damage(d Damage) error {
	if n.Running() {
		return fmt.Errorf("%s runs: its files are not damaged", n.id)
	}
	if n.disk != nil {
		if err := n.disk.back(); err != nil {
			return err
		}
	}
	file := filepath.Join(n.Data(), d.File)
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(d.Seed, 1))
	switch d.How {
	case "flip":
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	case "truncate":
		b = b[:r.IntN(len(b))]
	case "zero":
		page := r.IntN((len(b) + 4095) / 4096)
		clear(b[page*4096 : min(len(b), page*4096+4096)])
	case "remove":
		return os.Remove(file)
	default:
		return fmt.Errorf("damage %q: want flip, truncate, zero or remove", d.How)
	}
	return os.WriteFile(file, b, 0o600)
}
