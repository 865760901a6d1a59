// Package jsontext writes JSON strings. It saves guests encoding/json.
package jsontext

import "unicode/utf8"

const hex = "0123456789abcdef"

// Append writes a JSON string. Bytes that are no UTF-8 become U+FFFD.
func Append(out []byte, s string) []byte {
	out = append(out, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', byte(c))
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			out = utf8.AppendRune(out, c)
		}
	}
	return append(out, '"')
}
