package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
)

func failing(status int, kind, message string) answer {
	return answer{status: status, body: fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_7"}`, kind, message)}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    answer
		kind llm.Kind
		text string
	}{
		{failing(400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"), llm.KindContextOverflow, "prompt is too long: 208310 tokens > 200000 maximum (request req_7)"},
		{failing(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000"), llm.KindContextOverflow, ""},
		{failing(400, "invalid_request_error", "Output blocked by content filtering policy"), llm.KindContentFiltered, ""},
		{failing(400, "invalid_request_error", "messages.0.content: Field\n required"), llm.KindInvalidRequest, "messages.0.content: Field required (request"},
		{failing(401, "authentication_error", "invalid x-api-key "+key), llm.KindUnauthorized, "invalid x-api-key *** (request"},
		{failing(402, "billing_error", "no credit"), llm.KindUnauthorized, ""},
		{failing(403, "permission_error", "not yours"), llm.KindUnauthorized, ""},
		{failing(404, "not_found_error", "model: claude-9"), llm.KindModelNotFound, ""},
		{failing(413, "request_too_large", "Request exceeds the maximum size"), llm.KindContextOverflow, ""},
		{failing(429, "rate_limit_error", "slow down"), llm.KindRateLimited, ""},
		{failing(500, "api_error", "Internal server error"), llm.KindProvider, ""},
		{failing(504, "timeout_error", "too slow"), llm.KindTimeout, ""},
		{failing(529, "overloaded_error", "Overloaded"), llm.KindOverloaded, ""},
		{answer{status: 401, body: "no"}, llm.KindUnauthorized, ": 401 Unauthorized"},
		{answer{status: 404, body: "no"}, llm.KindModelNotFound, ""},
		{answer{status: 408}, llm.KindTimeout, ""},
		{answer{status: 413, body: "<html>"}, llm.KindContextOverflow, ""},
		{answer{status: 422}, llm.KindInvalidRequest, ""},
		{answer{status: 429}, llm.KindRateLimited, ""},
		{answer{status: 502, body: "<html>bad</html>"}, llm.KindProvider, ": 502 Bad Gateway"},
		{answer{status: 503}, llm.KindOverloaded, ""},
		{answer{status: 529}, llm.KindOverloaded, ": 529"},
		{failing(400, "invalid_request_error", strings.Repeat("ä ", 400)), llm.KindInvalidRequest, " (request req_7)"},
		{answer{body: "<html>", header: http.Header{"Content-Type": {"text/html"}}}, llm.KindProvider, ""},
		{answer{body: `{"content":`}, llm.KindStreamInterrupted, "error parsing response json"},
		{answer{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, llm.KindProvider, "connection refused"},
		{answer{err: &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}}, llm.KindTimeout, ""},
		{answer{err: syscall.ECONNRESET}, llm.KindStreamInterrupted, ""},
		{answer{body: `{"content":`, cut: io.ErrUnexpectedEOF}, llm.KindStreamInterrupted, ""},
	} {
		m, w := open(t, c.a)
		_, err := m.Infer(t.Context(), asks("Hi."))
		failure, _ := errors.AsType[*llm.Error](err)
		if failure == nil || failure.Kind != c.kind || failure.Model != sonnet || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: got %v", c.a, err)
			continue
		}
		if len(failure.Message) > 300 || strings.ContainsAny(failure.Message, "\n") || strings.Contains(err.Error(), key) {
			t.Errorf("%+v: the message is %d bytes: %q", c.a, len(failure.Message), failure.Message)
		}
		if len(w.bodies) != 1 {
			t.Errorf("%+v: asked %d times", c.a, len(w.bodies))
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	in := func(name, value string) time.Duration {
		a := failing(429, "rate_limit_error", "slow down")
		a.header = http.Header{name: {value}}
		m, _ := open(t, a)
		_, err := m.Infer(t.Context(), asks("Hi."))
		failure, _ := errors.AsType[*llm.Error](err)
		if failure == nil {
			t.Fatalf("%s %s: got %v", name, value, err)
		}
		return failure.RetryAfter
	}
	for value, want := range map[string]time.Duration{"3": 3 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "soon": 0, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
		if got := in("Retry-After", value); got != want {
			t.Errorf("Retry-After %s: got %v", value, got)
		}
	}
	if got := in("Retry-After-Ms", "250"); got != 250*time.Millisecond {
		t.Errorf("Retry-After-Ms: got %v", got)
	}
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	if got := in("Retry-After", date); got < 59*time.Minute || got > time.Hour {
		t.Errorf("Retry-After %s: got %v", date, got)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	m, _ := open(t, answer{body: hello})
	if _, err := m.Infer(ctx, asks("Hi.")); kind(err) != llm.KindTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestNoCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    answer
		none bool
	}{
		{answer{status: 404, body: "page not found"}, true},
		{failing(404, "not_found_error", "Not found"), true},
		{answer{status: 405}, true},
		{answer{status: 501}, true},
		{failing(404, "not_found_error", "model: claude-9"), false},
		{failing(500, "api_error", "oops"), false},
	} {
		m, _ := open(t, c.a)
		if _, err := m.CountTokens(t.Context(), asks("Hi.")); errors.Is(err, llm.ErrNoCount) != c.none || err == nil {
			t.Errorf("%+v: got %v", c.a, err)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]anthropic.Config{
		"Config.Key is missing":      {},
		"Config.BaseURL is not":      {BaseURL: "localhost:80", Key: key},
		"Config.MaxTokens is -1":     {Key: key, MaxTokens: -1},
		"such as https://api.anthro": {BaseURL: "ftp://u:secret@host"},
	} {
		if _, err := anthropic.New(cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
