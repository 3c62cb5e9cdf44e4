package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStoreFileOfVersion1(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "log-store_v1.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if got := formatStore(StoreWal); string(got) != string(golden) {
		t.Errorf("the file is\n%s, version 1 is\n%s", got, golden)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, storeFile)
	for text, want := range map[string]string{
		string(golden):     "",
		"limitd":           "damaged",
		string(golden[1:]): "damaged",
		strings.Replace(string(golden), "wal", "bolt", 1): "damaged",
		"limitd-log-store 2\nwal\n00000000\n":             "limitd-log-store 2",
	} {
		write(t, path, text)
		store, err := readStore(dir)
		switch {
		case want == "" && (err != nil || store != StoreWal):
			t.Errorf("%q is %q, %v", text, store, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)):
			t.Errorf("%q is %q, %v", text, store, err)
		}
	}
}
