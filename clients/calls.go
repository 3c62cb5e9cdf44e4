package main

import (
	"context"
	"fmt"

	"limitd/proc"
	"limitd/proc/nodes"
)

// window is the limit of RL.TAKE: exact, and nothing comes back during the run.
func (m *matrix) window() string { return fmt.Sprintf("log:%d/1d", m.limit) }

// throttle asks CL.THROTTLE once. Nothing comes back of its burst during the run.
func (m *matrix) throttle(d *driver, key string, t *tally) error {
	a, err := d.ask("call", "CL.THROTTLE", key, m.limit-1, 1, 86400)
	if err != nil {
		return err
	}
	switch {
	case !a.ok:
		t.fail(a.text)
	case len(a.words) != 5:
		return fmt.Errorf("CL.THROTTLE is answered %q, not with five integers%s", a.text, d.said)
	case a.number(0) == 0:
		t.allowed++
	default:
		t.denied++
	}
	return nil
}

// take asks RL.TAKE once, and says whether it was answered.
func (m *matrix) take(d *driver, key, id string, t *tally) (bool, error) {
	a, err := d.ask("call", "RL.TAKE", key, m.window(), "ID", id)
	if err != nil {
		return false, err
	}
	switch {
	case !a.ok:
		t.fail(a.text)
	case len(a.words) != 7:
		return false, fmt.Errorf("RL.TAKE is answered %q, not with seven integers%s", a.text, d.said)
	case a.number(0) == 1:
		t.allowed++
	default:
		t.denied++
	}
	return a.ok, nil
}

// call makes 3·limit calls of each command, one after the other.
func (m *matrix) call(ctx context.Context, r *row, at *nodes.Node) error {
	if r.client.generator {
		return m.generate(ctx, r, at, calls)
	}
	return m.with(r, at, login{}, func(d *driver) error {
		keys := keysFor(r, calls, 0)
		var plain, byID tally
		for n := range 3 * m.limit {
			if err := m.throttle(d, keys.plain, &plain); err != nil {
				return err
			}
			if _, err := m.take(d, keys.byID, fmt.Sprint(keys.byID, ":", n), &byID); err != nil {
				return err
			}
		}
		for _, t := range []*tally{&plain, &byID} {
			if err := t.exactly(m.limit); err != nil {
				return err
			}
			if t.answered() != 3*m.limit {
				return fmt.Errorf("not all of %d calls were answered: %s%s", 3*m.limit, t, d.said)
			}
		}
		return m.exhausted(ctx, at, keys)
	})
}

// pipe makes all calls of one key in one pipeline, three times its limit.
func (m *matrix) pipe(ctx context.Context, r *row, at *nodes.Node) error {
	if r.client.generator {
		return m.generate(ctx, r, at, pipeline)
	}
	limit, key := m.pipelined/3, keysFor(r, pipeline, 0).plain
	return m.with(r, at, login{}, func(d *driver) error {
		a, err := d.ask("pipe", m.pipelined, "CL.THROTTLE", key, limit-1, 1, 86400)
		if err != nil {
			return err
		}
		want := fmt.Sprint(limit, m.pipelined-limit, 0)
		if r.client.blindPipe {
			want = fmt.Sprint("replies ", m.pipelined)
		}
		if !a.ok || a.text != want {
			return fmt.Errorf("%d pipelined calls of a limit of %d are answered %q, not %q%s", m.pipelined, limit, a.text, want, d.said)
		}
		return left(ctx, at, 0, "CL.THROTTLE", key, limit-1, 1, 86400, 0)
	})
}

// keys are those of one client in one cell.
type keys struct{ plain, byID string }

func keysFor(r *row, at cell, round int) keys {
	base := fmt.Sprintf("%s:%s:%d", slug(string(at)), slug(r.client.name), round)
	return keys{plain: base + ":plain", byID: base + ":id"}
}

// exhausted asks the server that nothing is left of both keys: what the client
// counted is all that there was to count.
func (m *matrix) exhausted(ctx context.Context, at *nodes.Node, k keys) error {
	if err := left(ctx, at, 0, "CL.THROTTLE", k.plain, m.limit-1, 1, 86400, 0); err != nil {
		return err
	}
	return left(ctx, at, 0, "RL.PEEK", k.byID, m.window())
}

// left asks a node what remains, which is the third integer of the reply.
func left(ctx context.Context, at *nodes.Node, want int64, command ...any) error {
	got, err := remaining(ctx, at, command...)
	if err == nil && got != want {
		err = fmt.Errorf("the server has %d left where it should have %d, says %v", got, want, command)
	}
	return err
}

func remaining(ctx context.Context, at *nodes.Node, command ...any) (int64, error) {
	var n int64
	err := proc.Await(ctx, fmt.Sprint("ask ", at.ID, " ", command), nodes.Patience, func(ctx context.Context) error {
		reply, err := at.Client.Do(ctx, command...).Int64Slice()
		if err == nil && len(reply) > 2 {
			n = reply[2]
		}
		return err
	})
	return n, err
}
