package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"limitd/snapshot"
)

// An offline command replaces the files of a node. It builds the new ones in nextDir
// of the data directory, moves the old ones out and the new ones in. While the
// directory holds neither the old state nor the new one, it has replacementFile,
// and no node starts with it. FORMAT.md describes the file.
const (
	replacementFile   = "unfinished"
	replacementHeader = "limitd-unfinished 1"
	nextDir           = "unfinished.new"
	backupPrefix      = "before-recovery-"
)

// replaced are the files of a node that an offline command makes anew, in the order in
// which they are put in place: without a log the node does not start. It has one log.
var replaced = []string{identityFile, snapshotName, storeFile, walName, logName}

// outdated are files that the new node does not need: how the old one came into its
// cluster.
var outdated = []string{joiningFile}

// The commands that replace files.
const (
	byRecover = "limitd recover"
	byRestore = "limitd snapshot restore"
)

// replacement is what replacementFile holds.
type replacement struct {
	By       string   `json:"by"`
	Peer     string   `json:"peer"` // address of the node in the new configuration
	Recovery Recovery `json:"recovery"`
}

// refuseUnfinished is for all that use a data directory.
func refuseUnfinished(dir string) error {
	switch rep, err := readReplacement(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	default:
		return rep.refusal(dir)
	}
}

// refusal says what to do about a command that was interrupted.
func (rep *replacement) refusal(dir string) error {
	if rep.By == byRestore {
		return fmt.Errorf("data directory %s: `%s` was interrupted: remove what is in the directory and run it again", dir, rep.By)
	}
	return fmt.Errorf("data directory %s: `%s` was interrupted: run it again, with --yes, to finish it", dir, rep.By)
}

func readReplacement(dir string) (*replacement, error) {
	path := filepath.Join(dir, replacementFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rep, err := parseReplacement(b)
	if errors.Is(err, ErrVersion) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: an offline command on this directory was interrupted; its new files are in %s, the old ones here or in the newest %s*: "+
			"move them back by hand, or %s", path, err, nextDir, backupPrefix, otherSource)
	}
	return rep, nil
}

func parseReplacement(b []byte) (*replacement, error) {
	if err := newerText(b, replacementHeader); err != nil {
		return nil, err
	}
	header, rest, _ := strings.Cut(string(b), "\n")
	body, sum, _ := strings.Cut(rest, "\n")
	rep := &replacement{}
	if header != replacementHeader || sum != fmt.Sprintf("%08x\n", crc32.Checksum([]byte(header+"\n"+body+"\n"), castagnoli)) {
		return nil, errors.New("header or checksum is wrong")
	}
	if err := json.Unmarshal([]byte(body), rep); err != nil {
		return nil, err
	}
	return rep, nil
}

func (rep *replacement) format() ([]byte, error) {
	body, err := json.Marshal(rep)
	if err != nil {
		return nil, err
	}
	s := replacementHeader + "\n" + string(body) + "\n"
	return fmt.Appendf(nil, "%s%08x\n", s, crc32.Checksum([]byte(s), castagnoli)), nil
}

// write puts the file in place.
func (rep *replacement) write(dir string) error {
	b, err := rep.format()
	if err == nil {
		err = writeWhole(filepath.Join(dir, replacementFile), b)
	}
	if err != nil {
		return fmt.Errorf("note what is under way: %w", err)
	}
	snapshot.Failpoint("replace.noted")
	return nil
}

// makeNext makes an empty nextDir; what an interrupted command left there goes.
func makeNext(dir string) (string, error) {
	next := filepath.Join(dir, nextDir)
	if err := os.RemoveAll(next); err != nil {
		return "", err
	}
	return next, os.Mkdir(next, 0o700)
}

// freeBackup is the name of a directory that is not there yet.
func freeBackup(dir string) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprint(backupPrefix, n)
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// finish moves the files. It goes on wherever it was interrupted: a file that is
// still in nextDir has not replaced the old one.
func (rep *replacement) finish(dir string) error {
	next := filepath.Join(dir, nextDir)
	if rep.Recovery.Backup != "" {
		if err := moveOut(dir, next, filepath.Join(dir, rep.Recovery.Backup)); err != nil {
			return err
		}
	}
	for _, name := range replaced {
		from, to := filepath.Join(next, name), filepath.Join(dir, name)
		if absent(from) {
			continue
		}
		if err := rename(from, to); err != nil {
			return err
		}
		snapshot.Failpoint("replace.in")
	}
	if err := errors.Join(syncDir(dir), os.RemoveAll(next)); err != nil {
		return err
	}
	snapshot.Failpoint("replace.done")
	if err := os.Remove(filepath.Join(dir, replacementFile)); err != nil {
		return err
	}
	return syncDir(dir)
}

// moveOut moves the files that next replaces, and what belongs to them, to backup.
func moveOut(dir, next, backup string) error {
	if err := os.Mkdir(backup, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, name := range slices.Concat(replaced, outdated) {
		if slices.Contains(replaced, name) && absent(filepath.Join(next, name)) {
			continue // it is the new one that is in place
		}
		from := filepath.Join(dir, name)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := rename(from, filepath.Join(backup, name)); err != nil {
			return err
		}
		snapshot.Failpoint("replace.out")
	}
	return errors.Join(syncDir(backup), syncDir(dir))
}

// rename moves a file and never over another one.
func rename(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("move %s: there is a file %s", from, to)
	}
	return os.Rename(from, to)
}
