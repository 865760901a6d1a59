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
