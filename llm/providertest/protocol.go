package providertest

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// protocol is what differs between the APIs.
type protocol struct {
	api      API
	idHeader string
	// authorize checks the headers.
	authorize func(h http.Header, key string) *failure
	// parse reads and checks a body; counts is a request to count only.
	parse func(s *Server, body []byte, counts bool) (*ask, *failure)
	// overflow checks what fits in the window.
	overflow func(a *ask) *failure
	models   func(map[string]ModelSpec) any
	count    func(n int64) any
	// whole and events are an answer, in one piece and as a stream.
	whole  func(s *Server, a *ask, r *reply) any
	events func(s *Server, a *ask, r *reply) []event
	// failed is the body of an error, and errorEvents are an error in a stream.
	failed      func(f *failure, requestID string) any
	errorEvents func(f *failure) []event
}

// ask is a request that was accepted.
type ask struct {
	id, model string
	spec      ModelSpec
	stream    bool
	// usage reports whether a stream of chat completions ends with the usage.
	usage bool
	// encrypted reports whether reasoning items have their encrypted content.
	encrypted bool
	limit     int64
	system    string
	messages  []abi.Message
	tools     []abi.Tool
	// spaces are the namespaces of tools that have one.
	spaces map[string]string
	// shows reports whether an answer may have thinking, must that it does.
	shows, must bool
	prompt      prompt
	bill        abi.Usage
	long        int64 // tokens written to the cache for an hour
	// summary reports whether reasoning has its text; played and output are the answer of Responses.
	summary bool
	played  []event
	output  []any
	// keeps reports whether the server stores the answer, background that it answers at once and makes it then. Items are the conversation.
	keeps, background      bool
	previous, conversation string
	items                  rsItems
	cost                   float64
}

// failure is why a request is rejected or breaks. Kind is the error's type.
type failure struct {
	status                     int
	kind, message, param, code string
	after                      time.Duration
}

// invalid is a bad request.
func invalid(message string) *failure {
	return &failure{status: http.StatusBadRequest, message: message}
}

func protocolOf(path string, h http.Header) (p *protocol, counts bool) {
	switch path {
	case "/v1/messages", "/v1/messages/count_tokens":
		p = anthropic()
	case "/v1/responses", "/v1/responses/input_tokens":
		p = responses()
	case "/v1/chat/completions":
		p = chat()
	default:
		if p = chat(); h.Get("Anthropic-Version") != "" && h.Get("X-Api-Key") != "" {
			p = anthropic()
		}
		p.parse = nil
	}
	return p, strings.HasSuffix(path, "_tokens")
}

// reject answers with an error.
func (p *protocol) reject(w http.ResponseWriter, f *failure) {
	h := w.Header()
	if f.after > 0 {
		h.Set("Retry-After-Ms", strconv.FormatInt(f.after.Milliseconds(), 10))
	}
	if f.after >= time.Second {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.after.Seconds()))))
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(p.failed(f, h.Get(p.idHeader)))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// object is a JSON object in an answer.
type object = map[string]any
