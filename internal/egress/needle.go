package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// needle is a form of a secret to look for.
type needle struct {
	text []byte
	// label replaces it.
	label string
	// before and after mean that the character of base64 next to a find holds
	// some of the secret's bits.
	before, after bool
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
	add := func(text []byte, before, after bool) {
		for _, n := range out {
			if bytes.Equal(n.text, text) {
				return
			}
		}
		out = append(out, needle{text, label, before, after})
	}
	add(value, false, false)
	// A value that looks escaped itself looks so in the views, too.
	for range layers {
		if plain := unescape(view{text: value}); len(plain.text) >= leastSecret {
			value = plain.text
			add(value, false, false)
		}
	}
	value = out[0].text
	digits := []byte(hex.EncodeToString(value))
	add(digits, false, false)
	add(bytes.ToUpper(digits), false, false)
	for offset := range 3 {
		text, before, after := base64Core(value, offset)
		add(text, before, after)
		add(urlAlphabet(text), before, after)
	}
	return out
}

// base64Core encodes a value that stands offset bytes behind a boundary of three
// bytes, and keeps the characters that it determines alone.
func base64Core(value []byte, offset int) (text []byte, before, after bool) {
	padded := append(make([]byte, offset), value...)
	text = []byte(base64.RawStdEncoding.EncodeToString(padded))
	end := len(padded) * 8 / 6
	return text[(offset*8+5)/6 : end], offset > 0, end < len(text)
}

// urlAlphabet returns base64 text in the alphabet for URLs.
func urlAlphabet(text []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("+"), []byte("-")), []byte("/"), []byte("_"))
}
