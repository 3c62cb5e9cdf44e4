package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"limitd/resp"
)

// UserConfig is one [[user]]: somebody who may use the port of the clients.
type UserConfig struct {
	Name           string   `toml:"name"`
	Password       string   `toml:"password"`
	PasswordSHA256 string   `toml:"password_sha256"` // in place of password: the SHA-256 of it, 64 hex digits
	Commands       []string `toml:"commands"`        // of: limit, read, admin
	Keys           []string `toml:"keys"`            // glob patterns; none: all keys
}

// defaultUser is who a client is that gives a password and no name: the user of
// requirepass.
const defaultUser = "default"

// maxPassword is what a client may send before it has said who it is, and more than
// anybody types.
const maxPassword = 512

var permissions = map[string]resp.Permission{"limit": resp.MayLimit, "read": resp.MayRead, "admin": resp.MayAdmin}

// guarded says that clients need a password.
func (c *Config) guarded() bool { return c.RequirePass != "" || len(c.Users) > 0 }

func (c *Config) validateUsers(es *KeyErrors) {
	if len(c.RequirePass) > maxPassword {
		es.add("requirepass", "is longer than %d bytes", maxPassword)
	}
	names := map[string]int{}
	for i, u := range c.Users {
		key := func(name string) string { return fmt.Sprintf("user[%d].%s", i, name) }
		first, twice := names[u.Name]
		switch {
		case u.Name == "" || len(u.Name) > 64 || strings.ContainsFunc(u.Name, func(r rune) bool { return r <= ' ' || r > '~' }):
			es.add(key("name"), "%q is no name: use 1 to 64 printable ASCII characters without blanks", u.Name)
		case u.Name == defaultUser:
			es.add(key("name"), "%q is the user of requirepass: set that, or use another name", u.Name)
		case twice:
			es.add(key("name"), "%q is the name of user[%d] too", u.Name, first)
		}
		names[u.Name] = i
		switch _, err := hex.DecodeString(u.PasswordSHA256); {
		case u.Password == "" && u.PasswordSHA256 == "":
			es.add(key("password"), "is missing: give a password, or its SHA-256 as password_sha256")
		case u.Password != "" && u.PasswordSHA256 != "":
			es.add(key("password_sha256"), "stands beside a password: give one of them")
		case len(u.Password) > maxPassword:
			es.add(key("password"), "is longer than %d bytes", maxPassword)
		case u.PasswordSHA256 != "" && (err != nil || len(u.PasswordSHA256) != 2*sha256.Size):
			es.add(key("password_sha256"), "is no SHA-256: it has 64 hex digits, as in `printf %%s PASSWORD | sha256sum`")
		}
		if len(u.Commands) == 0 {
			es.add(key("commands"), `is missing: say what the user may run, of "limit", "read" and "admin"`)
		}
		for _, name := range u.Commands {
			if permissions[name] == 0 {
				es.add(key("commands"), `%q is unknown: use "limit", "read" and "admin"`, name)
			}
		}
		if u.Keys != nil && len(u.Keys) == 0 {
			es.add(key("keys"), `no pattern is listed: use ["*"] for all keys`)
		}
		for _, pattern := range u.Keys {
			if pattern == "" {
				es.add(key("keys"), "a pattern is empty: it would match no key but the empty one")
			}
		}
	}
}

// respUsers are the users as the port knows them.
func (c *Config) respUsers() (users []resp.User) {
	if c.RequirePass != "" {
		all := resp.MayLimit | resp.MayRead | resp.MayAdmin
		users = append(users, resp.User{Name: defaultUser, Password: sha256.Sum256([]byte(c.RequirePass)), May: all})
	}
	for _, u := range c.Users {
		user := resp.User{Name: u.Name, Password: sha256.Sum256([]byte(u.Password)), Keys: u.Keys}
		if u.PasswordSHA256 != "" {
			hex.Decode(user.Password[:], []byte(u.PasswordSHA256))
		}
		for _, name := range u.Commands {
			user.May |= permissions[name]
		}
		if len(u.Keys) == 1 && u.Keys[0] == "*" {
			user.Keys = nil
		}
		users = append(users, user)
	}
	return users
}

// ownLogin is how a node of this configuration logs in at another: with requirepass,
// or as the first user that may change the cluster and whose password is written here.
func (c *Config) ownLogin() login {
	if c.RequirePass != "" {
		return login{password: c.RequirePass}
	}
	for _, u := range c.Users {
		for _, name := range u.Commands {
			if name == "admin" && u.Password != "" {
				return login{user: u.Name, password: u.Password}
			}
		}
	}
	return login{}
}

// newPassword is one that nobody guesses.
func newPassword() string {
	var b [24]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
