package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/mortise-dev/mortise/llm"
)

// maxMessage is the length of an error message, in bytes.
const maxMessage = 300

// errCut is a stream that ended before the answer did.
var errCut = errors.New("the stream ended before the answer did")

// cut wraps a cause, if there is one, in errCut.
func cut(why error) error {
	if why == nil {
		return errCut
	}
	return fmt.Errorf("%w: %w", errCut, why)
}

// apiError is an error response or event.
type apiError struct {
	Detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id"`
	status    int
	header    http.Header
}

func (e *apiError) Error() string { return e.Detail.Type + ": " + e.Detail.Message }

// eventError parses an error event of a stream.
func eventError(data []byte) error {
	var e apiError
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: an event is not JSON", errCut)
	}
	return &e
}

// asAPIError returns the error that the API sent, if err is one.
func asAPIError(err error) (*apiError, bool) {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e, true
	}
	refused, ok := errors.AsType[*sdk.Error](err)
	if !ok {
		return nil, false
	}
	var e apiError
	_ = json.Unmarshal([]byte(refused.RawJSON()), &e) // without JSON there is the status
	e.status = refused.StatusCode
	if refused.Response != nil {
		e.header = refused.Response.Header
	}
	if e.RequestID == "" {
		e.RequestID = refused.RequestID
	}
	return &e, true
}

// failure converts an error.
func (m *Model) failure(ctx context.Context, model string, err error) error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	out := &llm.Error{Kind: llm.KindProvider, Model: model}
	if e, ok := asAPIError(err); ok {
		out.Kind, out.RetryAfter = e.kind(), retryAfter(e.header, time.Now())
		out.Message = m.line(e.message())
		return out
	}
	broken := errors.Is(err, errCut) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	late, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		out.Kind, out.Err = llm.KindCancelled, ctx.Err()
		return out
	case ctx.Err() != nil:
		out.Kind, out.Err = llm.KindTimeout, ctx.Err()
		return out
	case isNet && late.Timeout():
		out.Kind = llm.KindTimeout
	case broken:
		out.Kind = llm.KindStreamInterrupted
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	out.Message = m.line(err.Error())
	return out
}

// kind classifies by type, or else by status.
func (e *apiError) kind() llm.Kind {
	switch e.Detail.Type {
	case "overloaded_error":
		return llm.KindOverloaded
	case "rate_limit_error":
		return llm.KindRateLimited
	case "timeout_error":
		return llm.KindTimeout
	case "authentication_error", "permission_error", "billing_error":
		return llm.KindUnauthorized
	case "not_found_error":
		return llm.KindModelNotFound
	case "request_too_large":
		return llm.KindContextOverflow
	case "invalid_request_error":
		return e.invalid()
	}
	switch e.status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return llm.KindUnauthorized
	case http.StatusNotFound:
		return llm.KindModelNotFound
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return llm.KindTimeout
	case http.StatusRequestEntityTooLarge:
		return llm.KindContextOverflow
	case http.StatusTooManyRequests:
		return llm.KindRateLimited
	case http.StatusServiceUnavailable, 529:
		return llm.KindOverloaded
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return e.invalid()
	}
	return llm.KindProvider
}

// invalid classifies invalid requests by their message.
func (e *apiError) invalid() llm.Kind {
	text := strings.ToLower(e.Detail.Message)
	says := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case says("prompt is too long"), says("exceed context limit"), says("input is too long"), says("context window"):
		return llm.KindContextOverflow
	case says("content filtering policy"):
		return llm.KindContentFiltered
	default:
		return llm.KindInvalidRequest
	}
}

func (e *apiError) message() string {
	text := e.Detail.Message
	if text == "" {
		text = strings.TrimSpace(strconv.Itoa(e.status) + " " + http.StatusText(e.status))
	}
	if e.RequestID == "" {
		return text
	}
	id := " (request " + e.RequestID + ")"
	return text[:min(len(text), max(0, maxMessage-len(id)))] + id
}

// line returns a message in one line, without the key.
func (m *Model) line(text string) string {
	if m.cfg.Key != "" {
		text = strings.ReplaceAll(text, m.cfg.Key, "***")
	}
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// retryAfter parses the delay that the API asks for: milliseconds, seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// refusal returns the error of an answer with stop reason refusal.
func (m *Model) refusal(model string, d *sdk.RefusalStopDetails) error {
	text := "the model refused to answer"
	if d.Category != "" {
		text += " (" + string(d.Category) + ")"
	}
	if d.Explanation != "" {
		text += ": " + d.Explanation
	}
	return &llm.Error{Kind: llm.KindContentFiltered, Model: model, Message: m.line(text)}
}

// refusesThinking reports whether the API rejected a request because of its thinking blocks: their signatures, their
// order, or the beta feature that drops those which do not fit.
func refusesThinking(err error) bool {
	e, ok := asAPIError(err)
	if !ok || e.status != http.StatusBadRequest {
		return false
	}
	text := strings.ReplaceAll(e.Detail.Message, "`", "")
	return strings.Contains(text, "thinking block") || strings.Contains(text, "block_binding") || strings.Contains(text, "thinking-binding")
}

// lacksEndpoint reports whether a server lacks the path, as opposed to the model.
func lacksEndpoint(err error) bool {
	e, ok := asAPIError(err)
	if !ok {
		return false
	}
	switch e.status {
	case http.StatusNotFound:
		return e.Detail.Type != "not_found_error" || !strings.Contains(e.Detail.Message, "model")
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	default:
		return false
	}
}
