package egress

import (
	"bytes"
	"strings"
)

// separators are what is put between characters or numbers.
const separators = " \t\r\n:,;-_.|/"

// recoded are views of encodings that are no escapes: hexadecimal digits and characters with
// separators between them, quoted-printable, UTF-16, and lists of numbers.
func recoded(before view) []view {
	out := []view{without(before, separators), numbers(before, 10), numbers(before, 8)}
	if bytes.Contains(before.text, []byte("0x")) || bytes.Contains(before.text, []byte("0X")) {
		out = append(out, numbers(before, 16))
	}
	if bytes.IndexByte(before.text, '=') >= 0 {
		out = append(out, unquote(before))
	}
	if bytes.IndexByte(before.text, 0) >= 0 {
		out = append(out, without(before, "\x00"))
	}
	return out
}

// unquote undoes quoted-printable: bytes as =73, and line breaks behind "=".
func unquote(before view) view {
	var v view
	text := before.text
	for i := 0; i < len(text); {
		next := bytes.IndexByte(text[i:], '=')
		if next < 0 {
			next = len(text) - i
		}
		if next > 0 {
			v.copy(before, i, i+next)
			i += next
			continue
		}
		plain, n := unescapeHex(text[i:], 1, 2)
		switch {
		case n > 0:
		case bytes.HasPrefix(text[i:], []byte("=\r\n")):
			n = 3
		case bytes.HasPrefix(text[i:], []byte("=\n")):
			n = 2
		default:
			plain, n = text[i:i+1], 1
		}
		v.add(before, plain, i, i+n)
		i += n
	}
	return v
}

// between are characters that a list of numbers may have between them. Before a number may be what
// marks it as octal or hexadecimal.
const between = separators + `[]()\`

// numbers reads the numbers of a text, to some base, as bytes. Whatever else there is becomes a zero.
func numbers(before view, base int) view {
	v := view{skips: between}
	text := before.text
	for i := 0; i < len(text); {
		if strings.IndexByte(between, text[i]) >= 0 {
			i++
			continue
		}
		start := i
		if base != 10 && text[i] == '0' && i+1 < len(text) && strings.IndexByte("oOxX", text[i+1]) >= 0 {
			i += 2
		}
		n, digits := 0, 0
		for ; i < len(text) && digitOf(text[i]) < base; i++ {
			n, digits = min(n*base+digitOf(text[i]), 1<<8), digits+1
		}
		if digits > 0 && n < 1<<8 && (i == len(text) || strings.IndexByte(between, text[i]) >= 0) {
			v.add(before, []byte{byte(n)}, start, i)
			continue
		}
		for i < len(text) && strings.IndexByte(between, text[i]) < 0 {
			i++
		}
		if len(v.text) > 0 && v.text[len(v.text)-1] != 0 {
			v.add(before, []byte{0}, start, i)
		}
	}
	return v
}

// digitOf is the value of a digit, and a large number for what is none.
func digitOf(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return 1 << 8
}
