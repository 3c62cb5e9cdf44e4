package resp

// Names of commands, options and sections are ASCII and compared without regard
// to case. Other bytes are compared as they are.

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// is says that b is the lower-case name, in whatever case.
func is(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	for i, c := range b {
		if lower(c) != name[i] {
			return false
		}
	}
	return true
}

// lowered is b in lower case.
func lowered(b []byte) string {
	l := make([]byte, len(b))
	for i, c := range b {
		l[i] = lower(c)
	}
	return string(l)
}
