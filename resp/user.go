package resp

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Permission is a set of groups of commands.
type Permission uint8

const (
	MayLimit Permission = 1 << iota // decide, give back, reset keys, and look at keys
	MayRead                         // look at keys, settings, connections and the cluster
	MayAdmin                        // change the cluster, flush, save, disconnect others

	mayAll = MayLimit | MayRead | MayAdmin
)

// defaultUser is who a connection is without a name.
const defaultUser = "default"

// User is somebody who may use the port. Commands that concern the connection
// alone, INFO, ROLE, TIME, WAIT and COMMAND are open to all users, because client
// libraries want them before anything else.
type User struct {
	Name     string
	Password [sha256.Size]byte // the SHA-256 of it
	May      Permission
	Keys     []string // glob patterns of the keys it may name; none: all
}

// anyone is the user of a server that has none: nobody is asked for a password.
var anyone = &User{Name: defaultUser, May: mayAll}

// free says that nothing is forbidden to the user.
func (u *User) free() bool { return u.May == mayAll && u.Keys == nil }

// reaches says that the user may name all of the keys.
func (u *User) reaches(keys [][]byte) bool {
	for _, k := range keys {
		if !u.reachesKey(k) {
			return false
		}
	}
	return true
}

func (u *User) reachesKey(key []byte) bool {
	if u.Keys == nil {
		return true
	}
	for _, pattern := range u.Keys {
		if glob([]byte(pattern), key) {
			return true
		}
	}
	return false
}

// authenticate returns the user of that name, if the password is its own. Its time
// tells neither whether there is such a user nor how much of the password is right.
func (s *Server) authenticate(name, password []byte) *User {
	given := sha256.Sum256(password)
	u, known := s.users[string(name)]
	if !known {
		u = anyone
	}
	if right := subtle.ConstantTimeCompare(given[:], u.Password[:]) == 1; !right || !known {
		return nil
	}
	return u
}

// needsOf is what a user must be allowed to run a command; any of it is enough, and
// nothing means that all users may. Commands for which it says too little name what
// they need in the table.
func needsOf(cmd *command) Permission {
	keyed := cmd.lastKey != 0 || cmd.keysOf != nil
	switch {
	case cmd.needs != 0:
		return cmd.needs
	case cmd.has("write"):
		return MayLimit
	case cmd.has("readonly") && keyed:
		return MayLimit | MayRead
	case cmd.has("readonly"), cmd.has("admin"):
		return MayRead
	}
	return 0
}
