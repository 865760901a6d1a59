package talk_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

func TestShorten(t *testing.T) {
	t.Parallel()
	for n := range 200 {
		for _, s := range []string{strings.Repeat("é", 90), strings.Repeat("word ", 40), ""} {
			for name, got := range map[string]string{"Shorten": talk.Shorten(s, n), "Cut": talk.Cut(s, n), "Line": talk.Line(s, n)} {
				if len(got) > n || !utf8.ValidString(got) {
					t.Errorf("%s(%d) = %d bytes, %q", name, n, len(got), got)
				}
			}
		}
	}
	if got := talk.Shorten(strings.Repeat("a", 60)+strings.Repeat("z", 60), 90); !strings.HasPrefix(got, "aaaa") || !strings.HasSuffix(got, "zzz") ||
		!strings.Contains(got, "(… 30 bytes left out …)") {
		t.Errorf("%q", got)
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	var deep any = "bottom"
	for range 10 {
		deep = map[string]any{"d": deep}
	}
	many := make([]any, 100)
	for i := range many {
		many[i] = int64(i)
	}
	for want, c := range map[string]mortise.ToolCall{
		"bash command=go test ./...":       {Name: "bash", Arguments: map[string]any{"command": "go  test\n./..."}},
		"read limit=20 path=a.go raw=true": {Name: "read", Arguments: map[string]any{"path": "a.go", "limit": int64(20), "raw": true}},
		"odd not json":                     {Name: "odd", Arguments: "not json"},
		"none":                             {Name: "none"},
		"deep":                             {Name: "deep", Arguments: deep},
		"rate r=0.5":                       {Name: "rate", Arguments: map[string]any{"r": 0.5, "no": nil}},
	} {
		if got := talk.Call(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := talk.Call(&mortise.ToolCall{Name: "many", Arguments: many}); strings.Count(got, " ") != 32 {
		t.Errorf("%q", got)
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	say := func(role mortise.Role, text string) *mortise.Message {
		return &mortise.Message{Role: role, Content: []mortise.ContentBlock{mortise.Text(text)}}
	}
	for m, want := range map[*mortise.Message]bool{
		say(mortise.RoleTool, "x"):                            true,
		say(mortise.RoleUser, "\n<returncode>0</returncode>"): true,
		say(mortise.RoleUser, "Observation: nothing"):         true,
		say(mortise.RoleUser, "Please look at <output>"):      false,
		say(mortise.RoleAssistant, "<output>"):                false,
	} {
		if talk.Output(m) != want {
			t.Errorf("%s: %v", m.Text(), !want)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		tokens int64
		config any
		want   int
	}{
		{100, nil, 360},
		{100, map[string]any{"bytes_per_token": int64(4)}, 400},
		{100, map[string]any{"bytes_per_token": 99.0}, 360},
		{-5, nil, 0},
		{1 << 60, nil, 1 << 20},
	} {
		if got := talk.Limit(&mortise.SummarizeRequest{BudgetTokens: tc.tokens, Config: tc.config}); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}
