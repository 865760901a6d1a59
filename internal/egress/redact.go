package egress

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// find is a piece of a text that tells a secret.
type find struct {
	from, to int
	label    string
}

// redact replaces every form of a secret in text, and reports !ok when the
// result would be longer than limit. The text is not changed.
func redact(text []byte, x *index, limit int) (out []byte, count int, ok bool) {
	if x == nil || len(text) == 0 {
		return text, 0, true
	}
	finds := merge(search(text, x))
	if len(finds) == 0 {
		return text, 0, true
	}
	last := 0
	for _, f := range finds {
		out = append(out, text[last:f.from]...)
		out = append(out, f.label...)
		last = f.to
		if len(out) > limit {
			return nil, 0, false
		}
	}
	out = append(out, text[last:]...)
	return out, len(finds), len(out) <= limit
}

// search lists the finds in all views of the text.
func search(text []byte, x *index) []find {
	var finds, exact []find
	known := false
	for _, v := range views(text) {
		if v.skips != "" && !known {
			exact, known = slices.Clone(merge(finds)), true
			finds = slices.Clip(exact)
		}
		first := len(finds)
		folded := lower(v.text)
		x.search(folded, func(at int, n needle) {
			f := locate(text, v, at, at+len(n.text)+common(folded[at+len(n.text):], n.rest), n)
			if v.skips != "" && within(exact, f.from) { // a value that repeats itself, and what looks like more of it
				return
			}
			if last := len(finds) - 1; last >= first && f.from >= finds[last].from && f.from < finds[last].to {
				finds[last].to = max(finds[last].to, f.to)
				return
			}
			finds = append(finds, f)
		})
	}
	return finds
}

// locate returns which bytes of the text a match in one of its views covers.
func locate(text []byte, v view, from, to int, n needle) find {
	for left := n.before; left > 0 && from > 0 && isBase64(v.text[from-1]); left-- {
		from--
	}
	for left := n.after; left > 0 && to < len(v.text) && isBase64(v.text[to]); left-- {
		to++
	}
	f := find{v.source(from), v.source(to), n.label}
	for f.to > f.from && strings.IndexByte(cmp.Or(v.skips, " \t\r\n"), text[f.to-1]) >= 0 {
		f.to-- // skipped in the view, and no part of the secret
	}
	return f
}

// within reports whether a place is inside of one of the finds, which are in order.
func within(finds []find, at int) bool {
	n, _ := slices.BinarySearchFunc(finds, at, func(f find, at int) int { return f.to - at - 1 })
	return n < len(finds) && finds[n].from < at
}

// common is how many first bytes two texts have in common.
func common(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// merge sorts the finds and joins those that overlap.
func merge(finds []find) []find {
	slices.SortFunc(finds, func(a, b find) int {
		return cmp.Or(a.from-b.from, b.to-a.to, strings.Compare(a.label, b.label))
	})
	out := finds[:0]
	for _, f := range finds {
		if n := len(out); n > 0 && f.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, f.to)
			continue
		}
		out = append(out, f)
	}
	return out
}

func isBase64(c byte) bool {
	return isAlphanumeric(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

// redactHeader replaces secrets in the values, in place, and takes out headers
// whose name tells one.
func redactHeader(h http.Header, x *index, limit int) (count int, ok bool) {
	if x == nil {
		return 0, true
	}
	for name, values := range h {
		if x.inName(name) {
			delete(h, name)
			count++
			continue
		}
		for i, value := range values {
			out, n, ok := redact([]byte(value), x, limit)
			if !ok {
				return count, false
			}
			values[i] = string(out)
			count += n
		}
	}
	return count, true
}
