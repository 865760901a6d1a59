package ticket_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/examples/plugins/lookup/ticket"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                               nil,
		"see OPS-12, OPS-12 and (WEB-3)": {"OPS-12", "WEB-3"},
		"A-1 ABCDEFGHIJK-1 OPS- OPS-12345678 ops-1": nil,
		"UTF-8 and OPS-9":              nil, // UTF-8 comes first, and one is the limit below
		"xOPS-1 OPS-1x OPS-1-2 _OPS-4": nil,
		"OPS-1":                        {"OPS-1"},
	} {
		limit := 3
		if strings.HasPrefix(text, "UTF") {
			limit, want = 1, []string{"UTF-8"}
		}
		if got := ticket.Find(text, limit); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("</ticket>\x1b[2J\xff\u202e"), 5)
	f.Fuzz(func(t *testing.T, body []byte, limit int) {
		limit = max(0, min(limit, 1<<16))
		got := ticket.Clean(body, limit)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "<>\x1b\x00") || len(got) > 3*limit {
			t.Errorf("%q became %q", body, got)
		}
		for _, id := range ticket.Find(string(body), 4) {
			if !strings.Contains(string(body), id) || strings.ContainsAny(id, "/?#.") {
				t.Errorf("found %q in %q", id, body)
			}
		}
	})
}
