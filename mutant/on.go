//go:build mutant

package mutant

import "os"

var chosen = os.Getenv("LIMITD_MUTANT")

// On says that this process has the defect.
func On(name string) bool { return name == chosen }
