package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// decision is the reply of a command that limits. It prints as text or JSON.
type decision interface {
	fmt.Stringer
	denied() bool
}

// decide asks a node a command that limits and prints the reply, which parse reads. A
// denial ends the verb with errDenied, for its exit code.
func decide[D decision](cmd *cobra.Command, c *client, parse func(reply any) (D, error), args ...any) error {
	reply, err := c.call(cmd.Context(), clientTimeout, args...)
	if err != nil {
		return err
	}
	d, err := parse(reply)
	if err != nil {
		return err
	}
	if c.json {
		err = printJSON(cmd.OutOrStdout(), d)
	} else {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), d)
	}
	if err == nil && d.denied() {
		err = errDenied
	}
	return err
}

// fill reads the first integers of a reply; false: it has fewer.
func fill(v []int64, reply any) bool {
	list, ok := reply.([]any)
	ok = ok && len(list) >= len(v)
	for i := 0; ok && i < len(v); i++ {
		v[i], ok = list[i].(int64)
	}
	return ok
}
