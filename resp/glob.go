package resp

// glob matches as Redis does, byte by byte: * any bytes, ? one byte, [abc],
// [a-z] and [^a] one byte of a class, \ the next byte as it is. A class that is
// not closed ends with the pattern. Work is at most len(pattern) × len(s): only
// the latest * is tried again.
func glob(pattern, s []byte) bool {
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, i
			p++
			continue
		}
		if n, ok := globByte(pattern[p:], s[i]); ok {
			p += n
			i++
			continue
		}
		if star < 0 {
			return false
		}
		from++
		p, i = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globByte matches one byte with the front of the pattern, n bytes of it.
func globByte(p []byte, c byte) (n int, ok bool) {
	switch {
	case len(p) == 0:
		return 0, false
	case p[0] == '?':
		return 1, true
	case p[0] == '[':
		return globClass(p, c)
	case p[0] == '\\' && len(p) > 1:
		return 2, p[1] == c
	}
	return 1, p[0] == c
}

func globClass(p []byte, c byte) (n int, ok bool) {
	i := 1
	not := i < len(p) && p[i] == '^'
	if not {
		i++
	}
	for i < len(p) && p[i] != ']' {
		switch {
		case p[i] == '\\' && i+1 < len(p):
			ok = ok || p[i+1] == c
			i += 2
		case i+2 < len(p) && p[i+1] == '-':
			lo, hi := min(p[i], p[i+2]), max(p[i], p[i+2])
			ok = ok || lo <= c && c <= hi
			i += 3
		default:
			ok = ok || p[i] == c
			i++
		}
	}
	return min(i+1, len(p)), ok != not
}
