package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheModuleOfRedisCellIsAFileThatRedisLoads(t *testing.T) {
	dir := t.TempDir()
	module, plain := filepath.Join(dir, "libredis_cell.so"), filepath.Join(dir, "plain.so")
	for file, mode := range map[string]os.FileMode{module: 0o755, plain: 0o644} {
		if err := os.WriteFile(file, []byte("module"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range []struct{ name, file, problem string }{
		{"", "", ""},
		{module, module, ""},
		{"libredis_cell.so", module, ""}, // redis-server runs in another directory
		{filepath.Join(dir, "absent.so"), "", "absent.so: no such file or directory; give the library of github.com/brandur/redis-cell"},
		{dir, "", "not a file"},
		{plain, "", "chmod +x " + plain},
	} {
		file, err := cellFile(c.name)
		if c.problem == "" && (err != nil || file != c.file) {
			t.Errorf("cellFile(%q) = %q, %v", c.name, file, err)
		}
		if c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem) || !strings.HasPrefix(err.Error(), "-redis-cell-module")) {
			t.Errorf("cellFile(%q): %v", c.name, err)
		}
	}
}

func TestRedisCellIsNotMeasuredWithoutItsModule(t *testing.T) {
	res, err := againstCell(deniedAtLeader)(t.Context(), &env{})
	if err != nil || res.ok() || !strings.Contains(res.markdown(), "NOT MEASURED: redis-cell is not there") || !strings.Contains(res.missing, "-redis-cell-module") {
		t.Errorf("measure = %+v, %v", res, err)
	}
}
