//go:build mutant

package mutant

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// Names of the defects.
var Names = []string{
	"ack-before-commit",
	"nosync",
	"local-clock-in-apply",
	"no-clamp-of-t",
	"last-not-in-snapshot",
	"snapshot-without-last-entry",
	"tat-rounded-to-ms",
	"ge-at-burst-edge",
	"refund-twice",
	"void-batch-applied",
	"indoubt-as-refused",
	"denial-out-of-touch",
	"transfer-without-guard",
	"takeall-partial",
	"id-not-kept",
	"refund-id-twice",
}

var chosen atomic.Pointer[string]

func init() { Choose(os.Getenv("LIMITD_MUTANT")) }

// Choose gives the process another defect, or with "" none. It panics on a name that
// is none: a misspelled one would be a defect that nobody can find.
func Choose(name string) {
	if name != "" && !slices.Contains(Names, name) {
		panic(fmt.Sprintf("LIMITD_MUTANT=%s: there is no such defect; there are %s", name, strings.Join(Names, ", ")))
	}
	chosen.Store(&name)
}

// On says whether this process has the defect.
func On(name string) bool { return name == *chosen.Load() }
