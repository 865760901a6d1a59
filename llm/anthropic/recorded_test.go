package anthropic_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm"
)

// cassette is a file of recorded requests and what the API answered.
type cassette struct {
	Interactions []struct {
		Request struct {
			Body string
		}
		Response struct {
			Body    string
			Code    int
			Headers map[string][]string
		}
	}
}

// recorded returns the answers that others recorded of the API. They are no part of the repository, so a test that
// reads them is skipped where they are missing.
func recorded(t *testing.T) map[string]answer {
	t.Helper()
	shared := os.Getenv("MORTISE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	dir := filepath.Join(shared, "data", "payloads")
	if _, err := os.Stat(dir); err != nil {
		testskip.Skip(t, "no real recordings in data/payloads of the shared folder (set MORTISE_SHARED): %v", err)
	}
	out := map[string]answer{}
	for _, path := range files(t, dir, "fantasy/TestAnthropicCommon/*/*.yaml") {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c cassette
		if err := yaml.Unmarshal(raw, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, in := range c.Interactions {
			out[filepath.Base(path)+"#"+string(rune('0'+i))] = answer{status: in.Response.Code, header: in.Response.Headers, body: in.Response.Body}
		}
	}
	for _, path := range files(t, dir, "langchaingo/llms/anthropic/internal/anthropicclient/testdata/*.httprr") {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, response, ok := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "HTTP/2.0 200 OK\n")
		header, body, found := strings.Cut(response, "\n\n")
		if !ok || !found {
			t.Fatalf("%s: no answer in it", path)
		}
		kind := "application/json"
		if strings.Contains(header, "text/event-stream") {
			kind = "text/event-stream; charset=utf-8"
		}
		out[filepath.Base(path)] = answer{header: http.Header{"Content-Type": {kind}}, body: body}
	}
	return out
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s in %s: %v", pattern, dir, err)
	}
	return paths
}

// TestRecorded: what the API answered once comes out as the SDK's own reading of it has it.
func TestRecorded(t *testing.T) {
	t.Parallel()
	answers := recorded(t)
	calls, streams := 0, 0
	for name, a := range answers {
		m, _ := open(t, a)
		var got *abi.Response
		var err error
		streamed := strings.Contains(a.body, "event: message_start")
		if streamed {
			streams++
			got, err = llm.Collect(func(emit func(llm.Delta) bool) error { return m.Stream(t.Context(), asks("Hi."), emit) })
		} else {
			got, err = m.Infer(t.Context(), asks("Hi."))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		calls += len(got.Message.ToolCalls)
		compare(t, name, got, accumulated(t, a.body, streamed))
	}
	if len(answers) < 12 || calls < 6 || streams < 5 {
		t.Errorf("read %d answers, %d of them streams, with %d calls: some are missing", len(answers), streams, calls)
	}
}

// accumulated is how the SDK reads an answer.
func accumulated(t *testing.T, body string, streamed bool) *sdk.Message {
	t.Helper()
	var m sdk.Message
	if !streamed {
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		return &m
	}
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || strings.Contains(data, `"ping"`) {
			continue
		}
		var e sdk.MessageStreamEventUnion
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if err := m.Accumulate(e); err != nil {
			t.Fatal(err)
		}
	}
	return &m
}

func compare(t *testing.T, name string, got *abi.Response, want *sdk.Message) {
	t.Helper()
	var text string
	var inputs, arguments []any
	for _, b := range want.Content {
		text += b.Text
		if b.Type == "tool_use" {
			var v any
			if err := json.Unmarshal(b.Input, &v); err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, []any{b.ID, b.Name, v})
		}
	}
	for _, c := range got.Message.ToolCalls {
		var v any
		if err := json.Unmarshal([]byte(asJSON(c.Arguments)), &v); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, []any{c.ID, c.Name, v})
	}
	if got.Message.Text() != text || text == "" || !reflect.DeepEqual(arguments, inputs) {
		t.Errorf("%s: got %s", name, asJSON(got.Message))
	}
	u := want.Usage
	if got.Usage.PromptTokens != u.InputTokens || u.InputTokens == 0 || got.Usage.CompletionTokens != u.OutputTokens || u.OutputTokens < 5 {
		t.Errorf("%s: got usage %+v", name, got.Usage)
	}
	if got.Model != want.Model || string(got.StopReason) != string(want.StopReason) {
		t.Errorf("%s: got model %s, stop %s", name, got.Model, got.StopReason)
	}
}
