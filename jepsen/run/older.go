package run

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"limitd/jepsen/lab"
	"limitd/jepsen/nemesis"
)

// A rolling upgrade needs limitd of an older commit: one that makes another binary, that
// a lab can start, and whose traces the checkers read.

const program = "limitd/cmd/limitd"

// labFlags are those with which the lab starts a node (serve's hidden ones).
var labFlags = []string{"trace", "snapshot-every"}

// labSetting is one of the lab's that not every limitd knows.
const labSetting = "id_ttl"

// WantsOlder says that some nemesis of the options needs an older binary.
func (o Options) WantsOlder() bool {
	wanted, _ := nemesis.Find(o.Nemeses)
	return slices.ContainsFunc(wanted, func(n nemesis.Nemesis) bool { return slices.Contains(n.Needs, lab.Older) })
}

// FindOlder sees to the older binary, which it builds in dir if none is named. That there
// is none is a reason to skip what needs it, which it notes; but not if one was asked for.
func (o *Options) FindOlder(dir string) error {
	asked := o.From != "" || o.Previous != ""
	if !asked && o.Store != "" {
		o.NoPrevious = "an older limitd may not know the log store that is asked for; -from names one that does"
		return nil
	}
	err := o.findOlder(dir)
	if err != nil && !asked {
		o.NoPrevious, err = err.Error(), nil
	}
	return err
}

func (o *Options) findOlder(dir string) error {
	if o.Previous != "" {
		return usable(o.Previous)
	}
	packages, err := sources()
	if err != nil {
		return err
	}
	commit, err := olderCommit(".", o.From, packages)
	if err != nil {
		return err
	}
	binary, err := buildOlder(dir, commit)
	if err == nil {
		err = usable(binary)
	}
	if err == nil {
		o.Previous, o.From = binary, commit
	}
	return err
}

// usable says why a lab cannot run a binary: it does not know its flags.
func usable(binary string) error {
	args := []string{"serve"}
	for _, f := range labFlags {
		args = append(args, "--"+f, "1")
	}
	if out, err := exec.Command(binary, append(args, "--help")...).CombinedOutput(); err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s is no limitd that a lab can start: %w: %s", filepath.Base(binary), err, said)
	}
	return nil
}

// sources are the patterns, of git, of the files of which the binary is made.
func sources() ([]string, error) {
	out, err := exec.Command("go", "list", "-deps", program).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", program, err)
	}
	all := []string{":(top)go.mod", ":(top)go.sum", ":(top,exclude,glob)**/*_test.go"}
	for _, pkg := range strings.Fields(string(out)) {
		if folder, ok := strings.CutPrefix(pkg, "limitd/"); ok {
			all = append(all, ":(top,glob)"+folder+"/*.go")
		}
	}
	return all, nil
}

// olderCommit is the newest ancestor of HEAD in the repository around dir whose sources
// are others than HEAD's and that is fit; or the one that was asked for, if it is fit.
func olderCommit(dir, asked string, sources []string) (string, error) {
	if asked != "" {
		commit, err := git(dir, "rev-parse", "--verify", "--end-of-options", asked+"^{commit}")
		if err != nil {
			return "", fmt.Errorf("commit %q: %w", asked, err)
		}
		return commit, fit(dir, commit)
	}
	// Between two commits that changed the sources all are alike: of those, the newest one
	// is the parent of the next that changed them.
	changed, err := git(dir, append([]string{"rev-list", "--first-parent", "HEAD", "--"}, sources...)...)
	if err != nil {
		return "", err
	}
	var why error
	for commit := range strings.FieldsSeq(changed) {
		parent, err := git(dir, "rev-parse", "--verify", commit+"^")
		if err != nil {
			why = cmp.Or(why, fmt.Errorf("git knows none before %.10s", commit))
			break
		}
		if err := fit(dir, parent); err != nil {
			why = cmp.Or(why, err)
			continue
		}
		if same, err := git(dir, append([]string{"diff", "--name-only", parent, "HEAD", "--"}, sources...)...); err == nil && same != "" {
			return parent, nil
		}
	}
	return "", fmt.Errorf("no older commit can be used: %w", cmp.Or(why, errors.New("none makes another binary")))
}

var traceVersion = regexp.MustCompile(`Version \d+`)

// fit says why the limitd of a commit cannot run in a lab or be judged.
func fit(dir, commit string) error {
	for _, f := range labFlags {
		if _, err := git(dir, "grep", "-q", `"`+f+`"`, commit, "--", ":(top)cmd/limitd/"); err != nil {
			return fmt.Errorf("limitd of %.10s does not know serve --%s", commit, f)
		}
	}
	if _, err := git(dir, "grep", "-q", labSetting, commit, "--", ":(top)cmd/limitd/"); err != nil {
		return fmt.Errorf("limitd of %.10s does not know limits.%s", commit, labSetting)
	}
	formats := [2]string{}
	for i, c := range []string{commit, "HEAD"} {
		text, err := git(dir, "show", c+":trace/FORMAT.md")
		if err != nil {
			return err
		}
		formats[i] = traceVersion.FindString(text)
	}
	if formats[0] != formats[1] {
		return fmt.Errorf("the traces of %.10s are of %q, those of today of %q", commit, formats[0], formats[1])
	}
	return nil
}

// buildOlder builds limitd of a commit, from a copy of its files, which it takes away
// again. Build tags are for the newer binary alone: so a known defect comes with the
// upgrade, and the tag nextformat makes two formats of one commit.
func buildOlder(dir, commit string) (binary string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	files, err := os.MkdirTemp(dir, "older-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	archive := filepath.Join(files, "archive.tar")
	if _, err := git(".", "archive", "--format=tar", "-o", archive, commit); err != nil {
		return "", err
	}
	if out, err := exec.Command("tar", "-xf", archive, "-C", files).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w: %s", err, out)
	}
	binary = filepath.Join(dir, "limitd-older")
	return binary, lab.BuildWithClock(binary, files, program, "", files)
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		says := ""
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			says = ": " + strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("git %s: %w%s", args[0], err, says)
	}
	return strings.TrimSpace(string(out)), nil
}
