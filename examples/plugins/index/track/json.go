package track

import (
	"strings"
	"unicode/utf8"
)

// Fields reads the string fields of a JSON object, at any depth, the first of
// each name. It forgives what is malformed: some agents hand on arguments as
// text, or cut them.
func Fields(s string) map[string]any {
	out := map[string]any{}
	if s = strings.TrimSpace(s); !strings.HasPrefix(s, "{") {
		return out
	}
	key, have := "", false
	for i := 0; i < len(s) && len(out) < 64; i++ {
		switch s[i] {
		case '"':
			v, n := unquote(s[i+1:])
			i += n
			switch {
			case have:
				if _, dup := out[key]; !dup {
					out[key] = v
				}
				have = false
			default:
				rest := strings.TrimLeft(s[min(i+1, len(s)):], " \n\t\r")
				if strings.HasPrefix(rest, ":") {
					key, have = v, true
				}
			}
		case ',', '}', '{', '[':
			have = false
		}
	}
	return out
}

// unquote reads up to the closing quote and returns the bytes that it took, the
// quote included.
func unquote(s string) (string, int) {
	var b []byte
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return string(b), i + 1
		case '\\':
			if i++; i >= len(s) {
				return string(b), i
			}
			switch s[i] {
			case 'n':
				b = append(b, '\n')
			case 't':
				b = append(b, '\t')
			case 'r':
				b = append(b, '\r')
			case 'u':
				b = utf8.AppendRune(b, hex4(s[i+1:]))
				i = min(i+4, len(s))
			default:
				b = append(b, s[i])
			}
		default:
			b = append(b, s[i])
		}
	}
	return string(b), len(s)
}

func hex4(s string) rune {
	r := rune(0)
	for i := range min(4, len(s)) {
		c := s[i] | 0x20
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		default:
			return utf8.RuneError
		}
	}
	return r
}
