package extract

import "strings"

// jsonRuns cuts JSON text into runs of "key: value, key: value", one per object
// or so, without building values. Text that is no JSON gives something readable
// all the same.
func jsonRuns(s string, f func(string)) {
	run := make([]byte, 0, 200)
	flush := func() {
		if t := strings.Trim(string(run), " ,:"); len(t) > 3 {
			f(t)
		}
		run = run[:0]
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '{', '[':
			if len(run) > 100 {
				flush()
			}
		case '}', ']':
			if len(run) > 60 {
				flush()
			}
		case '"':
			n := stringEnd(s, i+1)
			run = append(run, s[i+1:n]...)
			i = n
		case ':':
			run = append(run, ':', ' ')
		case ',':
			if len(run) > 140 {
				flush()
				continue
			}
			run = append(run, ',', ' ')
		case ' ', '\n', '\t', '\r':
		default:
			run = append(run, c)
		}
		if len(run) > unitMax {
			flush()
		}
	}
	flush()
}

// stringEnd is the index of the quote that closes the string which starts at i,
// or len(s).
func stringEnd(s string, i int) int {
	for i < len(s) {
		switch s[i] {
		case '\\':
			i += 2
			continue
		case '"':
			return i
		}
		i++
	}
	return len(s)
}

// jsonValues calls f with each scalar of JSON text and the key that it stands
// under, without building values; text that is no JSON gives what looks like it.
func jsonValues(s string, f func(key, value string)) {
	key := ""
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			n := stringEnd(s, i+1)
			text := s[i+1 : min(n, len(s))]
			i = n
			rest := strings.TrimLeft(s[min(n+1, len(s)):min(n+8, len(s))], " \n\t")
			if strings.HasPrefix(rest, ":") {
				key = text
				continue
			}
			f(key, text)
		case kindOf(c)&chDigit != 0:
			n := i
			for n < len(s) && (kindOf(s[n])&chDigit != 0 || s[n] == '.') {
				n++
			}
			f(key, s[i:n])
			i = n
		}
	}
}

// label is how a key is written: "flight_number" is two words.
func label(key string) string { return strings.ReplaceAll(key, "_", " ") }

// namesThing reports values that tell one thing from another: identifiers, dates
// and long numbers, but no amounts and no prose.
func namesThing(v string) bool {
	if len(v) < 4 || len(v) > valueMax || strings.ContainsAny(v, " \\") {
		return false
	}
	if strings.Count(v, ":") > 1 && v[0] <= '9' { // a time of day
		return false
	}
	t, ok := next(v, 0)
	if !ok || t.from != 0 || t.to != len(v) || v[0] == '#' || !strings.ContainsAny(v, "0123456789_/@") {
		return false
	}
	return t.class == classIdent || t.class == classNumber && (len(v) >= 5 && strings.IndexByte(v, '.') < 0)
}
