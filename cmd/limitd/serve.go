package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"limitd/cluster"
	"limitd/proc/timeslice"
)

// serveFlags are the flags of `limitd serve`.
type serveFlags struct {
	config, node, listen, peerListen, dataDir string

	passFile, store string

	lab  labFlags
	join joining
	asks bool // --join was given
}

func newServe() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run one node",
		Long: `Run one node until SIGTERM or SIGINT.

With --config, the node named by --node of the cluster that FILE describes.
Without, a cluster of one: durable, and ready at once.

With --join, a node with an empty data directory asks a running cluster, through
any member, to take it in; it gets the state, and its vote once it is caught up.
A node that is a member already starts as ever, with --join or without.

A node that was removed from its cluster says so and stops: with exit code 0 if
it was asked to leave (limitd cluster leave), else with 3.

On the first signal a leader hands over and keeps answering for 2 s, then
connections are drained and the node stops. A second signal stops it at once.`,
		Example: `  limitd serve
  limitd serve --listen 127.0.0.1:6390 --data-dir /var/lib/limitd
  limitd serve --config cluster.toml --node n1
  limitd serve --config cluster.toml --node n4 --join 127.0.0.1:6381
  limitd serve --node n2 --listen 127.0.0.1:6382 --peer-listen 127.0.0.1:7382 --data-dir n2 --join 127.0.0.1:6380`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.asks = cmd.Flags().Changed("join")
			cfg, self, err := f.resolve()
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)).With("node", self.ID)
			return serve(cmd.Context(), cfg, self, f.join, f.lab, log)
		},
	}
	c.Flags().StringVar(&f.config, "config", "", "configuration `FILE` (TOML) of the cluster")
	c.Flags().StringVar(&f.node, "node", "", "`ID` of this node (without --config: kept in the data directory)")
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:6380", "`ADDRESS` for clients, without --config")
	c.Flags().StringVar(&f.peerListen, "peer-listen", "127.0.0.1:7380", "`ADDRESS` for other nodes, without --config")
	c.Flags().StringVar(&f.dataDir, "data-dir", "", "data `DIRECTORY` (default: the node's `data`, or limitd-data without --config)")
	c.Flags().StringVar(&f.join.member, "join", "", "join the cluster of the member with this `ADDRESS` for clients, if the data directory is empty")
	c.Flags().BoolVar(&f.join.nonVoter, "non-voter", false, "with --join: get no vote until promoted")
	c.Flags().StringVar(&f.passFile, "requirepass-file", "", "`FILE` whose first line is the password that clients need, without --config")
	c.Flags().StringVar(&f.store, "log-store", "", "log `STORE`, bolt or wal, without --config (default: that of the data directory, "+cluster.NewStore+" in a new one)")
	f.lab.add(c)
	c.MarkFlagsMutuallyExclusive("config", "listen")
	c.MarkFlagsMutuallyExclusive("config", "peer-listen")
	c.MarkFlagsMutuallyExclusive("config", "requirepass-file")
	c.MarkFlagsMutuallyExclusive("config", "log-store")
	return c
}

// resolve makes the configuration that the flags ask for, and picks this node's part.
func (f serveFlags) resolve() (Config, NodeConfig, error) {
	if f.join.nonVoter && !f.asks {
		return Config{}, NodeConfig{}, errors.New("--non-voter is for a node that joins: add --join with the address of a member")
	}
	if f.config == "" {
		return f.single()
	}
	cfg, err := LoadConfig(f.config)
	if err != nil {
		return Config{}, NodeConfig{}, err
	}
	ids := make([]string, len(cfg.Nodes))
	for i, n := range cfg.Nodes {
		ids[i] = n.ID
	}
	if f.node == "" {
		return Config{}, NodeConfig{}, fmt.Errorf("--node is missing: say which node of %s this is (%s)", f.config, strings.Join(ids, ", "))
	}
	self, ok := cfg.Node(f.node)
	if !ok {
		return Config{}, NodeConfig{}, fmt.Errorf("--node %s is not in %s, which lists %s", f.node, f.config, strings.Join(ids, ", "))
	}
	if f.dataDir != "" {
		self.Data = f.dataDir
	}
	if f.asks {
		err = f.join.check(cfg, self)
	}
	return cfg, self, err
}

// single is a node without a file: a cluster of one, or one that joins.
func (f serveFlags) single() (Config, NodeConfig, error) {
	cfg := DefaultConfig()
	self := NodeConfig{ID: f.node, RESP: f.listen, Peer: f.peerListen, Data: f.dataDir}
	if self.Data == "" {
		self.Data = "limitd-data"
	}
	if self.ID == "" {
		self.ID = "n-000000" // for the check below; the real one needs the data directory
	}
	cfg.Nodes = []NodeConfig{self}
	cfg.Raft.LogStore = f.store
	var err error
	if cfg.RequirePass, err = f.readPassword(); err != nil {
		return Config{}, NodeConfig{}, err
	}
	err = cfg.Validate()
	var es KeyErrors
	if errors.As(err, &es) {
		flags := strings.NewReplacer("node[0].resp", "--listen", "node[0].peer", "--peer-listen", "node[0].id", "--node", "node[0].data", "--data-dir", "raft.log_store", "--log-store")
		for _, e := range es {
			e.Key, e.Msg = flags.Replace(e.Key), flags.Replace(e.Msg)
			if open, _, found := strings.Cut(e.Msg, ": add the line"); found {
				e.Msg = open + ": say --requirepass-file with a file that holds one, or use a loopback address such as 127.0.0.1"
			}
		}
		return Config{}, NodeConfig{}, es
	}
	if f.asks {
		if err := f.join.check(cfg, self); err != nil { // before anything is written
			return Config{}, NodeConfig{}, err
		}
	}
	if self.ID, err = nodeID(self.Data, f.node); err != nil {
		return Config{}, NodeConfig{}, err
	}
	cfg.Nodes[0] = self
	return cfg, self, nil
}

// readPassword reads the file of --requirepass-file.
func (f serveFlags) readPassword() (string, error) {
	if f.passFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(f.passFile)
	if err != nil {
		return "", fmt.Errorf("--requirepass-file: %w", err)
	}
	password, _, _ := strings.Cut(string(b), "\n")
	if password = strings.TrimSuffix(password, "\r"); password == "" {
		return "", fmt.Errorf("--requirepass-file %s: its first line is empty: write the password there", f.passFile)
	}
	return password, nil
}

// serve runs a node until a signal, until it is no member any more, or until it
// must not go on.
func serve(ctx context.Context, cfg Config, self NodeConfig, join joining, lab labFlags, log *slog.Logger) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	defer paceCollector()()
	if err := timeslice.Shorten(); err != nil { // a node works for some microseconds at a time; bench/NOTES.md has what it does
		log.Info("the system's scheduler keeps its time slices: beside a busy program answers may take longer", "err", err)
	}

	if lab.profiles != "" {
		end, err := serveProfiles(lab.profiles)
		if err != nil {
			return fmt.Errorf("--profiles: %w", err)
		}
		defer end()
	}
	s, err := openServer(cfg, self, join, lab, log)
	if errors.Is(err, cluster.ErrVersion) {
		return &fatalError{err} // as if it had met that while it ran
	}
	if err != nil {
		return err
	}
	var gone removal
	select {
	case <-ctx.Done():
	case sig := <-signals:
		log.Info("stopping; a second signal stops at once", "signal", sig.String())
	case gone = <-s.removed:
		log.Info("stopping: the calls under way are answered first")
	case err := <-s.failed:
		return s.abandon(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	select {
	case err := <-stopped:
		if err == nil {
			err = s.end(gone)
		}
		return err
	case err := <-s.failed:
		return s.abandon(err)
	case sig := <-signals:
		return fmt.Errorf("stopped at once by a signal (%v) while it was stopping", sig)
	}
}

// abandon leaves everything as it is, except that clients are cut off: the state is
// not to be touched again, not even by an orderly close. A disk that hangs keeps what
// is left of the process, and its open connections with it, until it answers.
func (s *server) abandon(why error) error {
	s.resp.Close()
	return why
}

// end is how an orderly stop is told, in the last line.
func (s *server) end(gone removal) error {
	switch {
	case gone.reason == nil:
		s.log.Info("stopped")
	case gone.asked:
		s.log.Info("stopped: this node has left the cluster, as it was asked to; it comes back with an empty data directory and --join")
	default:
		return &fatalError{gone.reason}
	}
	return nil
}
