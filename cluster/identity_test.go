package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestRaftIDIsMadeOnceWithTheDataDirectory(t *testing.T) {
	dir := t.TempDir()
	id, fresh, err := loadIdentity(dir, "n-1")
	if err != nil || !fresh || !regexp.MustCompile(`^n-1-[0-9a-f]{8}$`).MatchString(id) {
		t.Fatalf("%q, fresh %v, %v", id, fresh, err)
	}
	if nodeID(id) != "n-1" {
		t.Errorf("node id of %s is %q", id, nodeID(id))
	}
	again, fresh, err := loadIdentity(dir, "n-1")
	if err != nil || fresh || again != id {
		t.Errorf("the second time: %q, fresh %v, %v; want %q", again, fresh, err, id)
	}
	other, _, err := loadIdentity(t.TempDir(), "n-1")
	if err != nil || other == id {
		t.Errorf("another directory has the same raft id %q, %v", other, err)
	}
}

func TestCrashWhileTheIdentityIsWrittenLeavesNone(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, identityFile+".tmp"), []byte("limitd-iden"), 0o600)
	id, fresh, err := loadIdentity(dir, "n1")
	if err != nil || !fresh {
		t.Fatalf("%q, fresh %v, %v", id, fresh, err)
	}
	if again, _, err := loadIdentity(dir, "n1"); again != id || err != nil {
		t.Errorf("%q, %v; want %q", again, err, id)
	}
}

func TestDamagedIdentityIsNamedAndNeverReplaced(t *testing.T) {
	good := string(formatIdentity("n1-3f9a0c11"))
	if good != "limitd-identity 1\nn1-3f9a0c11\n"+good[len(good)-9:] {
		t.Fatalf("the format has changed: %q", good)
	}
	cases := map[string]string{
		"empty":           "",
		"cut":             good[:len(good)-4],
		"longer":          good + "x",
		"a newer release": strings.Replace(good, "identity 1", "identity 2", 1),
		"no raft id":      string(formatIdentity("n1")),
		"upper case":      string(formatIdentity("n1-3F9A0C11")),
		"a line too many": string(formatIdentity("n1\nn1-3f9a0c11")),
	}
	for i := range good {
		b := []byte(good)
		b[i] ^= 1
		cases["byte "+string(rune('a'+i))+" flipped"] = string(b)
	}
	for name, content := range cases {
		dir := t.TempDir()
		path := filepath.Join(dir, identityFile)
		os.WriteFile(path, []byte(content), 0o600)
		_, _, err := loadIdentity(dir, "n1")
		if !errors.Is(err, errIdentity) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want errIdentity with the path", name, err)
		}
		if now, _ := os.ReadFile(path); string(now) != content {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestIdentityFormatVersion1(t *testing.T) {
	b, err := os.ReadFile("testdata/identity_v1.golden")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := parseIdentity(b); err != nil || id != "n1-3f9a0c11" || string(formatIdentity(id)) != string(b) {
		t.Errorf("%q, %v; written as %q", id, err, formatIdentity("n1-3f9a0c11"))
	}
}

func TestDataDirectoryOfAnotherNodeIsRefused(t *testing.T) {
	dir := t.TempDir()
	loadIdentity(dir, "n1")
	_, _, err := loadIdentity(dir, "n2")
	if err == nil || errors.Is(err, errIdentity) || !strings.Contains(err.Error(), `"n1"`) || !strings.Contains(err.Error(), `"n2"`) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v; want both node ids and the directory", err)
	}
}

func TestIdentityThatCannotBeKeptIsAnError(t *testing.T) {
	if id, _, err := loadIdentity(filepath.Join(t.TempDir(), "missing"), "n1"); err == nil {
		t.Errorf("%q was made and is nowhere", id)
	}
	for _, id := range []string{"", "n 1", "n\n1", "ñ", strings.Repeat("n", maxRaftID)} {
		dir := t.TempDir()
		if _, _, err := loadIdentity(dir, id); err == nil {
			t.Errorf("node id %q was taken", id)
		}
		if files, _ := os.ReadDir(dir); len(files) != 0 {
			t.Errorf("node id %q left a file", id)
		}
	}
}

func TestNodeIDOfWhatIsNoRaftIDIsEmpty(t *testing.T) {
	for raftID, want := range map[string]string{
		"n1-3f9a0c11": "n1", "a-b-00000000": "a-b", "n1": "", "": "", "-3f9a0c11": "", "n1_3f9a0c11": "", "n1-3f9a0cxx": "",
	} {
		if got := nodeID(raftID); got != want {
			t.Errorf("nodeID(%q) = %q, want %q", raftID, got, want)
		}
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add(formatIdentity("n1-3f9a0c11"))
	f.Add([]byte("limitd-identity 2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, err := parseIdentity(b); err == nil && (string(formatIdentity(id)) != string(b) || nodeID(id) == "") {
			t.Errorf("%q is taken for %q", b, id)
		}
	})
}
