package resp

import (
	"strconv"

	"limitd/limiter"
)

// settings are what CONFIG GET tells: settings of Redis that clients and tools
// ask for, as they are here. Durability is that of an append-only file that is
// synced before each answer.
func (s *Server) settings() [][2]string {
	return [][2]string{
		{"appendfsync", "always"},
		{"appendonly", "yes"},
		{"cluster-enabled", "no"},
		{"databases", strconv.Itoa(limiter.Namespaces)},
		{"maxclients", strconv.Itoa(s.cfg.MaxClients)},
		{"maxmemory", strconv.FormatInt(s.cfg.MaxMemory, 10)},
		{"maxmemory-policy", "noeviction"},
		{"port", strconv.Itoa(s.port())},
		{"proto-max-bulk-len", strconv.Itoa(s.cfg.MaxArgBytes)},
		{"replica-read-only", "no"},
		{"save", ""},
		{"slave-read-only", "no"},
		{"slowlog-max-len", "0"},
		{"tcp-keepalive", strconv.Itoa(int(keepAlive.Idle.Seconds()))},
		{"timeout", strconv.Itoa(int(s.cfg.IdleTimeout.Seconds()))},
	}
}

// configGet is CONFIG GET pattern [pattern …]: each setting that a pattern matches, once.
// A setting that is named in full is answered under the name as it was written.
func configGet(c *client, dst []byte, args [][]byte) []byte {
	var found [][2]string
	for _, set := range c.srv.settings() {
		for _, pattern := range args[2:] {
			if is(pattern, set[0]) {
				set[0] = string(pattern)
			} else if !glob([]byte(lowered(pattern)), []byte(set[0])) {
				continue
			}
			found = append(found, set)
			break
		}
	}
	dst = c.p().mapOf(dst, len(found))
	for _, set := range found {
		dst = appendPair(dst, set[0], set[1])
	}
	return dst
}
