package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"limitd/proc"
	"limitd/proc/nodes"
)

var (
	respField = regexp.MustCompile(`\bresp=(\d)`)
	userField = regexp.MustCompile(`\buser=(\S+)`)
)

// with starts a client's driver at a node for as long as do runs.
func (m *matrix) with(r *row, at *nodes.Node, as login, do func(*driver) error) error {
	d, err := startDriver(r.client, m.dir, at.Addr, as)
	if err != nil {
		return err
	}
	defer d.stop()
	return do(d)
}

// connect logs in, notes version and protocol, and makes one call.
func (m *matrix) connect(ctx context.Context, r *row, at *nodes.Node, as login) error {
	if r.client.generator {
		return m.generateOnce(ctx, r, at, as)
	}
	return m.with(r, at, as, func(d *driver) error {
		version, err := d.ask("version")
		if err != nil {
			return err
		}
		r.version = version.text
		info, err := d.ask("call", "CLIENT", "INFO") // redis-cli's driver knows integers only, and shows this as an error
		if err != nil {
			return err
		}
		if field := respField.FindStringSubmatch(info.text); field != nil {
			r.resp = field[1]
		} else {
			return fmt.Errorf("CLIENT INFO has no resp=: %q%s", info.text, d.said)
		}
		if user := userField.FindStringSubmatch(info.text); as.user != "" && (user == nil || user[1] != as.user) {
			return fmt.Errorf("CLIENT INFO does not say user=%s: %q", as.user, info.text)
		}
		key := fmt.Sprintf("connect:%s:%s", slug(r.client.name), as.user+as.password)
		a, err := d.ask("call", "CL.THROTTLE", key, m.limit-1, 1, 86400)
		if err != nil {
			return err
		}
		if !a.ok || len(a.words) != 5 || a.number(0) != 0 || a.number(2) != m.limit-1 {
			return fmt.Errorf("one call of a limit of %d as %q is answered %q, not 0 %d %d -1 ...%s", m.limit, as, a.text, m.limit, m.limit-1, d.said)
		}
		return nil
	})
}

// authenticate logs in with a password alone and as a user, and must not get in
// with none and a wrong one.
func (m *matrix) authenticate(ctx context.Context, r *row, at *nodes.Node) error {
	if err := m.connect(ctx, r, at, byPassword); err != nil {
		return fmt.Errorf("with a password: %w", err)
	}
	if !r.client.noUser {
		if err := m.connect(ctx, r, at, byUser); err != nil {
			return fmt.Errorf("as a user: %w", err)
		}
	}
	if r.client.generator {
		return nil
	}
	for _, as := range []login{{}, {password: "wrong"}} {
		if err := m.with(r, at, as, refusedLogin); err != nil {
			return fmt.Errorf("with the password %q: %w", as.password, err)
		}
	}
	return nil
}

// refusedLogin wants no call to pass, and the client to tell why. It may go on
// trying for ever, as node-redis does, if its log says it.
func refusedLogin(d *driver) error {
	d.patience = 3 * time.Second
	a, err := d.ask("call", "CL.THROTTLE", "connect:refused", 0, 1, 86400)
	switch {
	case errors.Is(err, errNoAnswer):
	case err != nil:
		return err
	case a.ok:
		return fmt.Errorf("it is let in: %q", a.text)
	}
	return proc.Await(context.Background(), fmt.Sprintf("the client does not tell why it is refused: %q", a.text), 5*time.Second, func(context.Context) error {
		if said := a.text + d.said.String(); !strings.Contains(strings.ToLower(said), "auth") && !strings.Contains(said, "WRONGPASS") {
			return errors.New(said)
		}
		return nil
	})
}

// as is the login that a client uses where nothing else is asked.
func (c *client) as() login {
	if c.noUser {
		return byPassword
	}
	return byUser
}

// slug is a client's name as a part of a key.
func slug(name string) string { return strings.ReplaceAll(name, " ", "") }
