package egress

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text with escapes undone, that knows where its bytes came from.
type view struct {
	text []byte
	// skips are characters that were left out, if they are not white space.
	skips string
	// marks describe where the source is not simply ahead of the last mark.
	marks []mark
}

// mark reports that the byte at out came from src, and those behind it from behind src.
// Sizes stay below 2 GiB, and a hostile text is full of marks.
type mark struct{ out, src int32 }

// source returns where in the source a position of the view lies.
func (v view) source(at int) int {
	i := v.next(at)
	if i == 0 {
		return at
	}
	return int(v.marks[i-1].src) + at - int(v.marks[i-1].out)
}

// next returns the index of the first mark behind a position.
func (v view) next(at int) int {
	i, found := slices.BinarySearchFunc(v.marks, at, func(m mark, at int) int { return int(m.out) - at })
	return i + btoi(found)
}

// layers is how many escapes on top of each other are undone.
const layers = 4

// views returns the text as it is, with each layer of escapes undone, without line breaks, as
// base64 is often wrapped, and with each of some encodings undone.
func views(text []byte) []view {
	out := []view{{text: text}}
	for range layers {
		last := out[len(out)-1]
		next := unescape(last)
		if len(next.text) == len(last.text) {
			break
		}
		out = append(out, next)
	}
	last := out[len(out)-1]
	if bytes.ContainsAny(last.text, "\r\n") {
		out = append(out, unwrap(last))
	}
	return append(out, recoded(last)...)
}

// add appends bytes that replace v.text[from:to] of the view before.
func (v *view) add(before view, text []byte, from, to int) {
	at := len(v.text)
	v.text = append(v.text, text...)
	v.mark(at, before.source(from))
	v.mark(at+len(text), before.source(to))
}

// mark notes where a position came from, unless that follows from the marks before.
func (v *view) mark(out, src int) {
	m := mark{int32(out), int32(src)} //nolint:gosec // sizes are bounded by the policy
	n, follows := len(v.marks), out
	if n > 0 { // positions only come behind those before
		follows += int(v.marks[n-1].src) - int(v.marks[n-1].out)
	}
	switch {
	case n > 0 && v.marks[n-1].out == m.out:
		v.marks[n-1] = m
	case follows != src:
		v.marks = append(v.marks, m)
	}
}

// unescape undoes one layer of percent, JSON and HTML escapes.
func unescape(before view) view {
	if !bytes.ContainsAny(before.text, `%\&`) {
		return before
	}
	var v view
	text := before.text
	for i := 0; i < len(text); {
		next := bytes.IndexAny(text[i:], `%\&`)
		if next < 0 {
			next = len(text) - i
		}
		if next > 0 {
			v.copy(before, i, i+next)
			i += next
			continue
		}
		plain, n := unescapeOne(text[i:])
		if n == 0 {
			v.copy(before, i, i+1)
			i++
			continue
		}
		v.add(before, plain, i, i+n)
		i += n
	}
	return v
}

// copy appends bytes unchanged.
func (v *view) copy(before view, from, to int) {
	at := len(v.text)
	v.text = append(v.text, before.text[from:to]...)
	v.mark(at, before.source(from))
	for i := before.next(from); i < len(before.marks) && int(before.marks[i].out) < to; i++ {
		v.mark(at+int(before.marks[i].out)-from, int(before.marks[i].src))
	}
	v.mark(at+to-from, before.source(to))
}

// unwrap leaves out line breaks and the space around them.
func unwrap(before view) view { return without(before, " \t\r\n") }

// without leaves out characters.
func without(before view, chars string) view {
	v := view{skips: chars}
	text := before.text
	start := 0
	for i := range text {
		if strings.IndexByte(chars, text[i]) < 0 {
			continue
		}
		if start < i {
			v.copy(before, start, i)
		}
		start = i + 1
	}
	if start < len(text) {
		v.copy(before, start, len(text))
	}
	return v
}

// unescapeOne undoes the escape at the beginning of text and returns how long it
// is, or 0 when there is none.
func unescapeOne(text []byte) (plain []byte, n int) {
	switch {
	case len(text) < 2:
		return nil, 0
	case text[0] == '%':
		return unescapeHex(text, 1, 2)
	case text[0] == '&':
		return unescapeHTML(text)
	case text[1] == 'u':
		return unescapeUnicode(text)
	case text[1] == 'x':
		return unescapeHex(text, 2, 2)
	}
	const from, to = `"\/'bfnrt`, "\"\\/'\b\f\n\r\t"
	if i := bytes.IndexByte([]byte(from), text[1]); i >= 0 {
		return []byte{to[i]}, 2
	}
	return nil, 0
}

// unescapeHex reads a byte of digits behind the first bytes.
func unescapeHex(text []byte, first, digits int) ([]byte, int) {
	c, ok := number(text, first, digits, 16)
	if !ok {
		return nil, 0
	}
	return []byte{byte(c)}, first + digits
}

func unescapeUnicode(text []byte) ([]byte, int) {
	high, ok := number(text, 2, 4, 16)
	if !ok {
		return nil, 0
	}
	if utf16.IsSurrogate(high) && len(text) > 7 && text[6] == '\\' && text[7] == 'u' {
		if low, ok := number(text, 8, 4, 16); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return utf8.AppendRune(nil, r), 12
			}
		}
	}
	return utf8.AppendRune(nil, high), 6
}

func unescapeHTML(text []byte) ([]byte, int) {
	const longest = 10
	end := bytes.IndexByte(text[:min(len(text), longest)], ';')
	if end < 2 {
		return nil, 0
	}
	switch name := string(text[1:end]); name {
	case "amp":
		return []byte("&"), end + 1
	case "lt":
		return []byte("<"), end + 1
	case "gt":
		return []byte(">"), end + 1
	case "quot":
		return []byte(`"`), end + 1
	case "apos":
		return []byte("'"), end + 1
	}
	if text[1] != '#' {
		return nil, 0
	}
	first, base := 2, 10
	if text[2] == 'x' || text[2] == 'X' {
		first, base = 3, 16
	}
	r, ok := number(text, first, end-first, base)
	if !ok || !utf8.ValidRune(r) {
		return nil, 0
	}
	return utf8.AppendRune(nil, r), end + 1
}

// number reads exactly so many digits.
func number(text []byte, first, digits, base int) (rune, bool) {
	if digits <= 0 || len(text) < first+digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[first:first+digits]), base, 31)
	if err != nil {
		return 0, false
	}
	return rune(n), true //nolint:gosec // 31 bits
}
