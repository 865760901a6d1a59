package http

import (
	"sort"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/sdk/go/internal/jsontext"
)

// appendRequest writes a request, without its body, as the host reads it. It saves
// guests encoding/json.
func appendRequest(out []byte, r Request) []byte {
	out = jsontext.Append(append(out, `{"url":`...), r.URL)
	if r.Method != "" {
		out = jsontext.Append(append(out, `,"method":`...), r.Method)
	}
	out = append(out, `,"headers":{`...)
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsontext.Append(out, name), ':')
		out = jsontext.Append(out, r.Header[name])
	}
	return append(out, "}}"...)
}

// readHeaders reads an object of strings as the host writes it: its escapes are
// those of Go, too. What it cannot read ends it.
func readHeaders(text string) map[string]string {
	out := map[string]string{}
	next := func(mark string) (string, bool) {
		var ok bool
		if text, ok = strings.CutPrefix(text, mark); !ok {
			return "", false
		}
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil || quoted[0] != '"' {
			return "", false
		}
		text = text[len(quoted):]
		s, err := strconv.Unquote(quoted)
		return s, err == nil
	}
	for mark := "{"; ; mark = "," {
		name, ok := next(mark)
		if !ok {
			return out
		}
		value, ok := next(":")
		if !ok {
			return out
		}
		out[name] = value
	}
}
