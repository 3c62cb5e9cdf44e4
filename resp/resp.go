// Package resp is the wire. STUB: replaced by the resp work.
package resp

import (
	"log/slog"
	"net"
	"time"

	"limitd/limiter"
)

// Config of a server: the bounds of DESIGN section 9 under resp.*
type Config struct {
	MaxArgs, MaxArgBytes, MaxRequestBytes, MaxPipeline int           // 1024, 64 KiB, 1 MiB, 10000
	MaxClients, MaxClientsPerIP                        int           // 20000, 0: off
	IdleTimeout, WriteTimeout                          time.Duration // 0: off, 5 s
	OutputBuffer                                       int           // 8 MiB
	MaxKey                                             int           // 1 KiB
	Version                                            string        // of limitd
	Logger                                             *slog.Logger
}

// Limiter is what the server needs of the limiter: *limiter.Limiter.
type Limiter interface {
	Do(*limiter.Chunk)
	Size(ns uint8) int
	Scan(ns uint8, cursor uint64, count int) ([][]byte, uint64)
	Stats() limiter.Stats
}

// Status is what INFO, ROLE, TIME, RL.TIME and RL.CLUSTER STATUS show of the cluster.
type Status struct {
	ID, RaftID, LeaderID, LeaderAddr, Role, ClusterID string
	Generation, Term, Commit, Applied, Last           uint64
	Time, Offset, WallOffset                          int64 // ns
	Voters                                            int
	DiskFree                                          int64
	Ready                                             bool
}

// NodeInfo is one row of RL.CLUSTER NODES.
type NodeInfo struct {
	ID, RaftID, Resp, Peer, Role string
	ContactMS                    int64
	Applied                      uint64
	Version                      string
}

// HashPoint is one pair of RL.HASH.
type HashPoint struct{ Index, Hash uint64 }

// Admin is what the server needs of the node.
type Admin interface {
	Status() Status
	Nodes() []NodeInfo
	Transfer(id string) error
	Hashes() []HashPoint
	SaveSnapshot() (path string, err error)
}

// Server serves RESP.
type Server struct{}

func NewServer(cfg Config, l Limiter, a Admin) *Server { panic("todo") }

// Serve accepts until Close or Drain; it returns nil after those.
func (s *Server) Serve(ln net.Listener) error { panic("todo") }

// Drain stops accepting, lets connections finish what they have read, and closes them; it returns after at most d.
func (s *Server) Drain(d time.Duration) { panic("todo") }
func (s *Server) Close() error          { panic("todo") }
