package egress

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// needle is a form of a secret to look for.
type needle struct {
	text []byte
	// label replaces it.
	label string
	// before and after are how many characters of base64 or base32 next to a find may hold some of
	// the secret's bits.
	before, after int
	// rest may follow a find, as a whole or its first bytes.
	rest []byte
}

// needlesOf returns the forms of a value. Escapes are undone by the views of the
// text, not listed here.
func needlesOf(name, value string) []needle {
	label := handleSecret + name + handleEnd
	texts := []string{value}
	if user, password, ok := strings.Cut(value, ":"); ok {
		texts = append(texts, base64.StdEncoding.EncodeToString([]byte(value)))
		if len(password) >= leastSecret {
			texts = append(texts, password)
		}
		if password == "" && len(user) >= leastSecret {
			texts = append(texts, user)
		}
	}
	var out []needle
	for _, text := range texts {
		out = append(out, formsOf(label, []byte(text))...)
	}
	return out
}

func formsOf(label string, value []byte) []needle {
	var out []needle
	add := func(text []byte, before, after int) {
		text = lower(text)
		for _, n := range out {
			if bytes.Equal(n.text, text) {
				return
			}
		}
		out = append(out, needle{text: text, label: label, before: before, after: after})
	}
	given := value
	add(value, 0, 0)
	// A value that looks escaped itself looks so in the views, too.
	for range layers {
		if plain := unescape(view{text: value}); len(plain.text) >= leastSecret {
			value = plain.text
			add(value, 0, 0)
		}
	}
	value = given
	add([]byte(hex.EncodeToString(value)), 0, 0)
	for _, text := range spelled(value) {
		add(text, 0, 0)
	}
	for offset := range 3 {
		text, before, after := base64Core(value, offset)
		for _, text := range [][]byte{text, urlAlphabet(text)} {
			add(text, before, after)
			for offset := range 3 { // twice
				text, _, _ := base64Core(text, offset)
				add(text, twiceAround, twiceAround)
				add(urlAlphabet(text), twiceAround, twiceAround)
			}
		}
	}
	for offset := range 5 {
		for _, e := range []*base32.Encoding{base32.StdEncoding, base32.HexEncoding} {
			text, before, after := base32Core(e, value, offset)
			add(text, before, after)
		}
	}
	if most := max(leastPrefix, 2*len(given)/3); most < len(given) {
		folded := lower(given)
		out = append(out, needle{text: folded[:most], rest: folded[most:], label: label})
	}
	return out
}

const (
	// leastPrefix is how many bytes of a longer secret are taken for a part of it.
	leastPrefix = 16
	// twiceAround is how many characters of base64 hold what is left of a character of base64.
	twiceAround = 3
)

// spelled are the forms of a value that are texts of their own: letters in another case, in UTF-16
// beyond ASCII, backwards, and without what is often put between characters.
func spelled(value []byte) [][]byte {
	backwards := bytes.Clone(value)
	slices.Reverse(backwards)
	out := [][]byte{backwards}
	if bare := bytes.Map(func(r rune) rune {
		if strings.ContainsRune(separators, r) {
			return -1
		}
		return r
	}, value); len(bare) >= leastSecret {
		out = append(out, bare)
	}
	if isASCII(value) || !utf8.Valid(value) {
		return out
	}
	runes := []rune(string(value))
	slices.Reverse(runes)
	out = append(out, []byte(string(runes)), bytes.ToUpper(value), bytes.ToLower(value))
	var little, big []byte
	for _, unit := range utf16.Encode([]rune(string(value))) {
		little, big = binary.LittleEndian.AppendUint16(little, unit), binary.BigEndian.AppendUint16(big, unit)
	}
	return append(out, little, big)
}

func isASCII(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c >= utf8.RuneSelf })
}

// lower returns a copy with the letters of ASCII in lower case, which is as long.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// base64Core encodes a value that stands offset bytes behind a boundary of three
// bytes, and keeps the characters that it determines alone.
func base64Core(value []byte, offset int) (text []byte, before, after int) {
	padded := append(make([]byte, offset), value...)
	text = []byte(base64.RawStdEncoding.EncodeToString(padded))
	return core(text, len(padded), offset, 6)
}

// base32Core is base64Core for base32, with its boundaries of five bytes.
func base32Core(e *base32.Encoding, value []byte, offset int) (text []byte, before, after int) {
	padded := append(make([]byte, offset), value...)
	text = []byte(e.WithPadding(base32.NoPadding).EncodeToString(padded))
	return core(text, len(padded), offset, 5)
}

// core cuts off what a value behind some bytes does not determine alone, in characters of some bits.
func core(text []byte, size, offset, bits int) (inner []byte, before, after int) {
	end := size * 8 / bits
	return text[(offset*8+bits-1)/bits : end], btoi(offset > 0), btoi(end < len(text))
}

// urlAlphabet returns base64 text in the alphabet for URLs.
func urlAlphabet(text []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("+"), []byte("-")), []byte("/"), []byte("_"))
}
