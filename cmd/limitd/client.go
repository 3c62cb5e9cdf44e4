package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// clientTimeout bounds one call of a client verb. A node answers within its
// request_timeout; saving a snapshot takes longer and has no bound of its own.
const clientTimeout = 10 * time.Second

// client is how the verbs talk to a node.
type client struct {
	login
	addr string // host:port; empty: the defaults, one after the other
	json bool   // output
}

// login is who a verb says it is; no password: nobody.
type login struct{ user, password string }

const (
	envUser     = "LIMITD_USER"
	envPassword = "LIMITD_PASSWORD"
)

// environmentLogin is what the environment says, where a password is not seen by
// everybody who lists the processes.
func environmentLogin() login { return login{os.Getenv(envUser), os.Getenv(envPassword)} }

func (c *client) flags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.addr, "addr", "", "`HOST:PORT` of a node (default: 127.0.0.1:6380, then 127.0.0.1:6381)")
	cmd.PersistentFlags().BoolVar(&c.json, "json", false, "print JSON")
	cmd.PersistentFlags().StringVar(&c.user, "user", "", "`NAME` to log in with, if the node asks for a password (default: $"+envUser+")")
	cmd.PersistentFlags().StringVar(&c.password, "password", "", "`PASSWORD` to log in with (default: $"+envPassword+", which other users of the machine do not see)")
}

// call sends one command and returns its reply, or an error when ctx ends. It is
// sent once: a decision that was sent again could be charged twice.
func (c *client) call(ctx context.Context, timeout time.Duration, args ...any) (any, error) {
	addr, err := c.pick()
	if err != nil {
		return nil, err
	}
	who := c.login
	if who.password == "" {
		who.password = os.Getenv(envPassword)
	}
	if who.user == "" {
		who.user = os.Getenv(envUser)
	}
	r := redis.NewClient(&redis.Options{
		Addr:            addr,
		Username:        who.user,
		Password:        who.password,
		Protocol:        2,
		DisableIdentity: true,
		MaxRetries:      -1,
		ReadTimeout:     timeout,
		WriteTimeout:    timeout,
	})
	defer r.Close()
	defer context.AfterFunc(ctx, func() { r.Close() })() // ends a read, which does not look at ctx
	reply, err := r.Do(ctx, args...).Result()
	if err != nil && strings.HasPrefix(err.Error(), "NOAUTH") {
		return nil, fmt.Errorf("%s: %w Set %s (and %s for a named user), or say --password", addr, err, envPassword, envUser)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return reply, nil
}

// pick returns the address to talk to. Dialing finds out which default port is
// in use before anything is sent.
func (c *client) pick() (string, error) {
	if c.addr != "" {
		return c.addr, nil
	}
	return firstThatAnswers(defaultAddrs)
}

// defaultAddrs are where `limitd serve` and the first node of `limitd local` listen.
var defaultAddrs = []string{"127.0.0.1:6380", "127.0.0.1:6381"}

func firstThatAnswers(addrs []string) (string, error) {
	var errs []error
	for _, addr := range addrs {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			conn.Close()
			return addr, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no node answers on %s: start one with `limitd serve`, or say --addr (%w)", strings.Join(addrs, " or "), errors.Join(errs...))
}

// pair is one name and value of a flat reply.
type pair struct {
	name  string
	value any
}

// pairs reads a flat array of name, value, name, value.
func pairs(reply any) ([]pair, error) {
	flat, ok := reply.([]any)
	if !ok || len(flat)%2 != 0 {
		return nil, fmt.Errorf("unexpected reply %v: is this a limitd node of this version?", reply)
	}
	out := make([]pair, 0, len(flat)/2)
	for i := 0; i < len(flat); i += 2 {
		out = append(out, pair{fmt.Sprint(flat[i]), flat[i+1]})
	}
	return out, nil
}
