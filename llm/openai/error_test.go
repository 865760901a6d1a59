package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/openai"
)

func wantKind(t *testing.T, err error, kind llm.Kind, text string) llm.Error {
	t.Helper()
	failure, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("got %v, want an *llm.Error of kind %s", err, kind)
	}
	if failure.Kind != kind || !strings.Contains(failure.Error(), text) {
		t.Errorf("got %s: %v\nwant %s: ...%s...", failure.Kind, failure, kind, text)
	}
	if strings.Contains(failure.Error(), secret) {
		t.Errorf("the key is in %v", failure)
	}
	return *failure
}

func TestErrors(t *testing.T) {
	t.Parallel()
	object := func(message, typ, code string) string {
		return `{"error":{"message":"` + message + `","type":"` + typ + `","param":null,"code":"` + code + `"}}`
	}
	cases := []struct {
		name   string
		status int
		body   string
		kind   llm.Kind
		text   string
	}{
		{"overflow", 400, object("This model's maximum context length is 8192 tokens.", "invalid_request_error", "context_length_exceeded"), llm.KindContextOverflow, "8192"},
		{"overflow of llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, llm.KindContextOverflow, ""},
		{"overflow of vLLM", 400, `{"object":"error","message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}`, llm.KindContextOverflow, ""},
		{"key", 401, object("Incorrect API key provided: "+secret+". You can", "invalid_request_error", "invalid_api_key"), llm.KindUnauthorized, "provided: [key]"},
		{"masked key", 401, object("Incorrect API key provided: sk-pr***wxyz.", "invalid_request_error", ""), llm.KindUnauthorized, "provided: [key]"},
		{"forbidden", 403, object("Country not supported", "request_forbidden", ""), llm.KindUnauthorized, ""},
		{"quota", 429, object("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), llm.KindUnauthorized, "quota"},
		{"rate", 429, object("Rate limit reached", "tokens", "rate_limit_exceeded"), llm.KindRateLimited, "Rate limit"},
		{"overloaded", 503, object("The engine is currently overloaded", "server_error", ""), llm.KindOverloaded, ""},
		{"slow down", 503, "upstream connect error", llm.KindOverloaded, "upstream connect error"},
		{"model", 404, object("The model 'x' does not exist", "invalid_request_error", "model_not_found"), llm.KindModelNotFound, ""},
		{"model of Ollama", 404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","code":null}}`, llm.KindModelNotFound, "pulling"},
		{"path", 404, "404 page not found", llm.KindInvalidRequest, "page not found"},
		{"FastAPI", 422, `{"detail":"Field required"}`, llm.KindInvalidRequest, "Field required"},
		{"FastAPI list", 422, `{"detail":[{"msg":"Field required"}]}`, llm.KindInvalidRequest, "Field required"},
		{"text", 400, `{"error":"oops"}`, llm.KindInvalidRequest, "oops"},
		{"list of Gemini", 400, `[{"error":{"code":400,"message":"Unknown name","status":"INVALID_ARGUMENT"}}]`, llm.KindInvalidRequest, "Unknown name"},
		{"filter", 400, object("The response was filtered", "", "content_filter"), llm.KindContentFiltered, ""},
		{"timeout", 408, "", llm.KindTimeout, "Request Timeout"},
		{"gateway", 502, "<html>bad\n gateway</html>", llm.KindProvider, "<html>bad gateway</html>"},
		{"server", 500, object("The server had an error", "server_error", ""), llm.KindProvider, ""},
		{"long", 400, object(strings.Repeat("é", 400), "", ""), llm.KindInvalidRequest, "é…"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, api := range []openai.API{openai.Responses, openai.Chat} {
				m := open(t, &wire{status: c.status, body: c.body}, openai.Config{API: api})
				_, err := m.Infer(t.Context(), question("Hi"))
				failure := wantKind(t, err, c.kind, c.text)
				if failure.Model != "gpt-5" || len(failure.Message) > 300 || strings.Contains(failure.Message, "\n") {
					t.Errorf("model %q, message %q", failure.Model, failure.Message)
				}
				_, err = streamed(t.Context(), m, question("Hi"))
				wantKind(t, err, c.kind, c.text)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		header, value string
		want          time.Duration
	}{
		"seconds":      {"Retry-After", "1.5", 1500 * time.Millisecond},
		"date":         {"Retry-After", "Sat, 01 Mar 2025 12:00:30 GMT", 30 * time.Second},
		"past":         {"Retry-After", "Sat, 01 Mar 2025 11:00:00 GMT", 0},
		"milliseconds": {"Retry-After-Ms", "250", 250 * time.Millisecond},
		"negative":     {"Retry-After", "-3", 0},
		"endless":      {"Retry-After", "1e300", 1<<63 - 1},
		"odd":          {"Retry-After", "soon", 0},
	} {
		w := &wire{status: 429, body: `{"error":{"message":"slow"}}`, header: http.Header{}}
		w.header.Set(c.header, c.value)
		_, err := open(t, w, openai.Config{Now: func() time.Time { return now }}).Infer(t.Context(), question("Hi"))
		if got := wantKind(t, err, llm.KindRateLimited, "").RetryAfter; got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestStreamErrors: a stream that began as a success and does not end as one.
func TestStreamErrors(t *testing.T) {
	t.Parallel()
	said := events(`{"model":"m","choices":[{"index":0,"delta":{"content":"Hel"}}]}`)
	begun := events(`{"type":"response.output_text.delta","output_index":0,"delta":"Hel"}`)
	cases := []struct {
		name string
		api  openai.API
		wire wire
		kind llm.Kind
		text string
	}{
		{"chat cut", openai.Chat, wire{body: said}, llm.KindStreamInterrupted, "ended before"},
		{"chat reset", openai.Chat, wire{body: said, fails: io.ErrUnexpectedEOF}, llm.KindStreamInterrupted, "unexpected EOF"},
		{"chat garbage", openai.Chat, wire{body: said + events(`{"choi`)}, llm.KindStreamInterrupted, "not JSON"},
		{"chat error object", openai.Chat, wire{body: said + events(`{"error":{"message":"too busy","code":503}}`)}, llm.KindOverloaded, "too busy"},
		{"chat error text", openai.Chat, wire{body: said + "event: error\n" + events(`{"error":"out of memory"}`)}, llm.KindProvider, "out of memory"},
		{"chat error of vLLM", openai.Chat, wire{body: said + events(`{"object":"error","message":"bad","code":400}`)}, llm.KindInvalidRequest, "bad"},
		{"chat error as a body", openai.Chat, wire{body: `{"error":{"message":"limited","code":429}}`}, llm.KindRateLimited, "limited"},
		{"chat filter", openai.Chat, wire{body: said + events(`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, "[DONE]")}, llm.KindContentFiltered, "filter"},
		{"chat refusal", openai.Chat, wire{body: events(`{"choices":[{"delta":{"refusal":"I will "}}]}`, `{"choices":[{"delta":{"refusal":"not."},"finish_reason":"stop"}]}`, "[DONE]")}, llm.KindContentFiltered, "I will not."},
		{"chat gave up", openai.Chat, wire{body: said + events(`{"choices":[{"delta":{},"finish_reason":"error"}]}`, "[DONE]")}, llm.KindProvider, "gave up"},
		{"responses cut", openai.Responses, wire{body: begun}, llm.KindStreamInterrupted, "ended before"},
		{"responses failed", openai.Responses, wire{body: begun + events(`{"type":"response.failed","response":{"object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}}`)}, llm.KindRateLimited, "slow"},
		{"responses error event", openai.Responses, wire{body: begun + "event: error\n" + events(`{"type":"error","code":"server_error","message":"sorry","param":null}`)}, llm.KindProvider, "sorry"},
		{"responses filter", openai.Responses, wire{body: begun + events(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`)}, llm.KindContentFiltered, "filter"},
		{"responses refusal", openai.Responses, wire{body: events(`{"type":"response.refusal.delta","delta":"No."}`, `{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"refusal","refusal":"No."}]}}`, `{"type":"response.completed","response":{"status":"completed"}}`)}, llm.KindContentFiltered, "filtered (model gpt-5): No."},
		{"responses cancelled", openai.Responses, wire{body: begun + events(`{"type":"response.cancelled","response":{"status":"cancelled"}}`)}, llm.KindProvider, "cancelled"},
		{"not responses", openai.Responses, wire{body: `{"id":"chatcmpl-1"}`}, llm.KindProvider, "use Chat Completions"},
		{"not chat", openai.Chat, wire{body: `{"hello":1}`}, llm.KindProvider, "compatible server"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := streamed(t.Context(), open(t, &c.wire, openai.Config{API: c.api}), question("Hi"))
			if failure := wantKind(t, err, c.kind, c.text); failure.Model != "gpt-5" {
				t.Errorf("model %q", failure.Model)
			}
		})
	}
}

// dead is a network without servers.
type dead struct{}

func (dead) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// silent is a server that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	_, err := open(t, dead{}, openai.Config{}).Infer(t.Context(), question("Hi"))
	wantKind(t, err, llm.KindProvider, "connection refused")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = streamed(ctx, open(t, silent{}, openai.Config{}), question("Hi"))
	wantKind(t, err, llm.KindCancelled, "")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = open(t, silent{}, openai.Config{API: openai.Chat}).Infer(ctx, question("Hi"))
	wantKind(t, err, llm.KindTimeout, "")
	w := &wire{body: events(`{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{"content":"b"}}]}`)}
	err = open(t, w, openai.Config{API: openai.Chat}).Stream(t.Context(), question("Hi"), func(llm.Delta) bool { return false })
	wantKind(t, err, llm.KindCancelled, "no more")
}
