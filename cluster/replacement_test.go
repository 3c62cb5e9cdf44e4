package cluster

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestUnfinishedFileVersion1IsReadAndWrittenAsItWas(t *testing.T) {
	want := &replacement{By: byRecover, Peer: "127.0.0.1:7383", Recovery: Recovery{
		Survey: Survey{
			ID: "n3", RaftID: "n3-3f9a0c11", ClusterID: "0c0102030405060708090a0b0c0d0e0f", Generation: 1, SnapshotIndex: 4096,
			LogFirst: 12, LogLast: 5000, LastTerm: 7, Last: 4998, Time: 1_700_000_000_000_000_000, CommittedAtLeast: 4997, Uncertain: 3, Records: 21,
			Voters: []string{"n1-3f9a0c11", "n2-77aa0001", "n3-3f9a0c11"}, NonVoters: []string{},
		},
		NewRaftID: "n3-00000001", Generation: 2, Backup: "before-recovery-1",
	}}
	golden, err := os.ReadFile("testdata/unfinished_v1.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseReplacement(golden); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("it reads as %+v, %v", got, err)
	}
	if b, err := want.format(); err != nil || string(b) != string(golden) {
		t.Errorf("it is written as\n%s%v", b, err)
	}
}

// Nobody may guess what an unreadable one meant.
func TestDamagedUnfinishedFileIsNamedAndKeepsTheNodeStopped(t *testing.T) {
	golden, err := os.ReadFile("testdata/unfinished_v1.golden")
	if err != nil {
		t.Fatal(err)
	}
	n := newTestCluster(t, 1).nodes[0]
	path := filepath.Join(n.cfg.DataDir, replacementFile)
	for _, b := range []string{"", string(golden[:30]), string(golden) + "x", strings.Replace(string(golden), "7383", "7384", 1), strings.Replace(string(golden), "finished 1", "finished 2", 1)} {
		if err := os.WriteFile(path, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		refuses(t, n, path, nextDir)
		if _, err := Recover(n.cfg.DataDir, n.member()); err == nil || !strings.Contains(err.Error(), replacementFile) {
			t.Errorf("%q: %v", b, err)
		}
	}
}

func FuzzUnfinishedFile(f *testing.F) {
	golden, err := os.ReadFile("testdata/unfinished_v1.golden")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte(replacementHeader + "\n{}\n00000000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rep, err := parseReplacement(b)
		if err != nil {
			return
		}
		again, err := rep.format()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseReplacement(again); err != nil || !reflect.DeepEqual(got, rep) {
			t.Errorf("%q is written as %q, which reads as %+v, %v", b, again, got, err)
		}
	})
}
