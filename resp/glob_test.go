package resp

import (
	"strings"
	"testing"
	"time"
)

// As redis-server 7 answers for the same patterns and keys.
func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"**", "abc", true}, {"a", "a", true}, {"a", "b", false},
		{"a*c", "abbc", true}, {"a*c", "abbd", false}, {"*b*b*", "abab", true}, {"*ab", "aab", true}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"user:[0-9]*", "user:42", true}, {"user:[0-9]*", "user:x", false}, {"[^a]", "b", true}, {"[^a]", "a", false}, {"[abc]", "c", true},
		{"[z-a]", "m", true}, {"[a", "a", true}, {"[a", "b", false}, {"[]", "]", false}, {`\*`, "*", true}, {`\*`, "a", false}, {`[\]]`, "]", true},
		{`a\`, `a\`, true}, {"[a-]", "-", false}, {"[a-", "-", true}, {"[^", "a", true}, {"[", "[", false}, {"[]a]", "a", false}, {"a[", "a", false}, {"h[^e]llo", "hello", false}, {"h[^e]llo", "hallo", true},
		{"?", "é", false}, {"??", "é", true}, {"\xff", "\xfe", false}, {"a*", "A", false},
	} {
		if got := glob([]byte(c.pattern), []byte(c.s)); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

// A pattern of many stars must not take exponential time.
func TestGlobIsBounded(t *testing.T) {
	start := time.Now()
	if glob([]byte(strings.Repeat("a*", 500)+"b"), []byte(strings.Repeat("a", 1024))) {
		t.Error("matched")
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v", d)
	}
}
