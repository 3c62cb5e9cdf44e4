package workload

import (
	"context"
	"errors"
	"time"

	"limitd/jepsen/history"
)

// A call with an ID may be repeated, at any node, and is charged once. So a worker that has
// no answer asks again.
const (
	repeats     = 3                      // at most, and then it is given up
	repeatPause = 120 * time.Millisecond // before the first one; longer each time
)

// repeated is what the history calls it.
var repeated = Operation{F: "repeat"}

// repeat asks those of the calls again that have an ID and no answer.
func (k *worker) repeat(ctx context.Context, calls []call, said []outcome) {
	first := k.asked
	for i := range said {
		c, o, last := calls[i], said[i], first
		for n := 1; c.id != "" && open(o) && n <= repeats && sleep(ctx, time.Now().Add(time.Duration(n)*repeatPause)); n++ {
			node := k.another(last)
			if node == "" {
				return
			}
			last = node
			k.pace.spend(1)
			c = k.w.call(&repeated, c.key, c.cmd)
			c.id = calls[i].id
			o = k.ask(node, []call{c})[0]
		}
	}
}

// open says that it is not known what became of a call, or that it was refused for now.
func open(o outcome) bool {
	if o.Type != history.Fail {
		return o.Type == history.Info
	}
	var said replyError
	if errors.As(o.err, &said) {
		return said.code() == "TRYAGAIN" || said.code() == "CLUSTERDOWN"
	}
	return true
}

// another is a node that is not that one, if there is another; "" if there is none.
func (k *worker) another(than string) string {
	nodes := k.w.c.Nodes()
	if len(nodes) == 0 {
		return ""
	}
	i := k.way.IntN(len(nodes))
	if nodes[i] == than {
		i = (i + 1) % len(nodes)
	}
	return nodes[i]
}
