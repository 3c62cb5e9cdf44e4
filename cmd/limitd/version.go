package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version of limitd, as CHANGELOG.md counts it.
const version = "0.1.0"

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  limitd version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]string{
					"version": version, "go": runtime.Version(), "platform": platform, "revision": strings.TrimSpace(revision()),
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "limitd %s %s %s%s\n", version, runtime.Version(), platform, revision())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// revision is the commit that the binary was built from, if Go recorded it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var rev, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = " " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	return rev + dirty
}
