package dynamic

import (
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sniffed is how much of a string is decoded to find out whether there is a text in it.
const sniffed = 1 << 10

// Base64 returns the text in a base64 string, and what of a data URL is before it. It reports false for what is no text, as an image. What
// is declared as text/* is one.
func Base64(s, mediaType string) (head, text string, ok bool) {
	if !IsBase64Text(s, mediaType) {
		return "", "", false
	}
	head, s = split(s)
	out := make([]byte, base64.StdEncoding.DecodedLen(len(s))+2)
	n, _ := base64.RawStdEncoding.Decode(out, []byte(strings.TrimRight(s, "=\r\n ")))
	return head, strings.ToValidUTF8(string(out[:n]), "\ufffd"), true
}

// IsBase64Text reports whether [Base64] finds a text; s may be cut.
func IsBase64Text(s, mediaType string) bool {
	head, rest := split(s[:min(len(s), 2*sniffed)])
	var out [sniffed]byte
	n, _ := base64.RawStdEncoding.Decode(out[:], []byte(strings.TrimRight(rest[:min(len(rest), sniffed)], "=\r\n ")))
	declared := strings.TrimPrefix(strings.ToLower(mediaType+head), "data:")
	return n > 0 && (strings.HasPrefix(declared, "text/") || plain(out[:n]))
}

// split cuts the head off a data URL.
func split(s string) (head, rest string) {
	if i := strings.IndexByte(s, ','); i >= 0 && strings.HasPrefix(s, "data:") {
		return s[:i+1], s[i+1:]
	}
	return "", s
}

// plain reports whether bytes are the beginning of a text in UTF-8.
func plain(b []byte) bool {
	for i := 0; i < len(b); {
		c, size := utf8.DecodeRune(b[i:])
		switch {
		case c == utf8.RuneError && size == 1 && utf8.FullRune(b[i:]), unicode.IsControl(c) && !strings.ContainsRune("\t\n\r\f\x1b", c):
			return false
		}
		i += size
	}
	return !strings.HasPrefix(string(b), "%PDF-")
}
