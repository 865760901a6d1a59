package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/llm"
)

const (
	maxMessage   = 300
	maxErrorBody = 1 << 20
)

// fault is an error object as servers write them. Code may be a number.
type fault struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"`
}

// readFault reads an error object, or a text in its place.
func readFault(data json.RawMessage) fault {
	var f fault
	if json.Unmarshal(data, &f.Message) == nil {
		return f
	}
	_ = json.Unmarshal(data, &f) // What can be read of it is enough.
	return f
}

func (f fault) code() string {
	code, _ := f.Code.(string)
	return code
}

// status is the code as an HTTP status, which OpenRouter sends inside of streams.
func (f fault) status() int {
	if n, ok := f.Code.(float64); ok && n >= 400 && n < 600 {
		return int(n)
	}
	return 0
}

// faultIn finds the fault in a body or event. Servers write it as an object or a text
// below "error", as the whole object, or below "detail"; Gemini's puts it in a list.
func faultIn(data []byte) (f fault, found bool) {
	if list, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte("[")); ok {
		data = bytes.TrimSuffix(list, []byte("]"))
	}
	var envelope struct {
		Object string          `json:"object"`
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		fault
	}
	switch {
	case json.Unmarshal(data, &envelope) != nil, envelope.Object == "response":
		return f, false // The state of a response has its own reader.
	case len(envelope.Error) > 0 && string(envelope.Error) != "null":
		return readFault(envelope.Error), true
	case envelope.Object == "error", envelope.Type == "error":
		return envelope.fault, true
	case envelope.Message != "":
		return envelope.fault, false
	default:
		return readFault(envelope.Detail), false
	}
}

// refusal reads a response that is an error.
func (m *Model) refusal(model string, response *http.Response) error {
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // The status alone says the most of it.
	f, found := faultIn(body)
	if f == (fault{}) {
		f.Message = cmp.Or(strings.TrimSpace(string(body)), http.StatusText(response.StatusCode))
	}
	e := m.fail(model, response.StatusCode, f)
	if response.StatusCode == http.StatusNotFound && !found { // of a server that has no such path
		e.Kind = llm.KindInvalidRequest
	}
	e.RetryAfter = retryAfter(response.Header, m.cfg.Now())
	return e
}

// errorIn finds an error in a body or event of a response that began as a success.
func (m *Model) errorIn(model string, data []byte) error {
	if f, found := faultIn(data); found {
		return m.fail(model, 0, f)
	}
	return nil
}

// fail makes the error of a fault. The status is 0 where none came with it.
func (m *Model) fail(model string, status int, f fault) *llm.Error {
	return &llm.Error{Kind: kindOf(cmp.Or(status, f.status()), f), Model: model, Message: m.line(cmp.Or(f.Message, f.Type, f.code(), "no message"))}
}

func kindOf(status int, f fault) llm.Kind {
	if kind := kindByWord(f); kind != "" {
		return kind
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return llm.KindUnauthorized
	case status == http.StatusNotFound:
		return llm.KindModelNotFound
	case status == http.StatusTooManyRequests:
		return llm.KindRateLimited
	case status == http.StatusServiceUnavailable, status == 529:
		return llm.KindOverloaded
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout, status == 524:
		return llm.KindTimeout
	case status == http.StatusConflict, status >= http.StatusInternalServerError:
		return llm.KindProvider
	case status >= http.StatusBadRequest, f.Type == "invalid_request_error":
		return llm.KindInvalidRequest
	default:
		return llm.KindProvider
	}
}

// kindByWord finds what codes, types and well-known messages say more exactly than a status.
func kindByWord(f fault) llm.Kind {
	words := strings.ToLower(f.code() + " " + f.Type)
	message := strings.ToLower(f.Message)
	has := func(text string, parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has(words, "context_length_exceeded", "exceed_context_size") || has(message, "maximum context length", "context window",
		"available context size", "prompt is too long", "exceeds the maximum number of tokens"):
		return llm.KindContextOverflow
	case has(words, "insufficient_quota", "billing"): // It does not pass by waiting.
		return llm.KindUnauthorized
	case has(words, "content_filter", "content_policy", "_policy", "invalid_prompt"):
		return llm.KindContentFiltered
	case has(words, "model_not_found"):
		return llm.KindModelNotFound
	case has(words, "overloaded", "slow_down") || has(message, "overloaded"):
		return llm.KindOverloaded
	case has(words, "rate_limit"):
		return llm.KindRateLimited
	case has(words, "invalid_api_key", "authentication"):
		return llm.KindUnauthorized
	default:
		return ""
	}
}

// broken is an exchange that did not come to its end.
func (m *Model) broken(ctx context.Context, model string, kind llm.Kind, err error) error {
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &llm.Error{Kind: llm.KindTimeout, Model: model, Err: context.Cause(ctx)}
	case ctx.Err() != nil:
		return &llm.Error{Kind: llm.KindCancelled, Model: model, Err: context.Cause(ctx)}
	case isNetwork && network.Timeout():
		kind = llm.KindTimeout
	}
	return &llm.Error{Kind: kind, Model: model, Message: m.line(err.Error())}
}

// retryAfter is how long the provider asks to wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return duration(seconds, time.Second)
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

func duration(n float64, unit time.Duration) time.Duration {
	switch {
	case !(n > 0): // also not a number
		return 0
	case n >= float64(math.MaxInt64/unit):
		return math.MaxInt64
	default:
		return time.Duration(n * float64(unit))
	}
}

// line is a message in one line, short and without keys.
func (m *Model) line(s string) string {
	if m.cfg.Key != "" {
		s = strings.ReplaceAll(s, m.cfg.Key, "[key]")
	}
	s = regexp.MustCompile(`\bsk-[\w*.-]+`).ReplaceAllString(s, "[key]")
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "\ufffd")
	if len(s) <= maxMessage {
		return s
	}
	s = s[:maxMessage-len("…")]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
