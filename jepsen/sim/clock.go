package sim

import (
	"sync/atomic"
	"time"
)

// clock is that of one machine since its boot. Its wall clock is wrong by what a
// nemesis likes; its boot clock is right, and starts anywhere.
type clock struct {
	booted time.Time
	before time.Duration // on the boot clock at booted
	id     string        // of the boot
	wrong  *atomic.Int64 // ns; of the machine, over its boots
}

// Boot implements cluster.Clock.
func (c *clock) Boot() int64 { return int64(c.before + time.Since(c.booted)) }

// BootID implements cluster.Clock.
func (c *clock) BootID() string { return c.id }

// Wall implements cluster.Clock.
func (c *clock) Wall() int64 { return time.Now().UnixNano() + c.wrong.Load() }
