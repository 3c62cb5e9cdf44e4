package trace

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"
)

// binaryKey is what a key that is no plain text begins with in a row.
const binaryKey = "base64:"

// Key writes a key as rows have it: as it is, or as "base64:" and its bytes in base64
// if it is not valid UTF-8 or begins with "base64:" itself.
func Key(key []byte) string {
	s := string(key)
	if utf8.ValidString(s) && !strings.HasPrefix(s, binaryKey) {
		return s
	}
	return binaryKey + base64.StdEncoding.EncodeToString(key)
}

// KeyBytes reads what Key wrote.
func KeyBytes(s string) ([]byte, error) {
	b, ok := strings.CutPrefix(s, binaryKey)
	if !ok {
		return []byte(s), nil
	}
	key, err := base64.StdEncoding.DecodeString(b)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", s, err)
	}
	return key, nil
}
