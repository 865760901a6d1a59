package anthropic_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key    = "sk-ant-secret"
	sonnet = "claude-sonnet-4-5"
	hello  = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929",` +
		`"content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`
)

// answer is what the wire says to one request.
type answer struct {
	status int // 200 when 0
	header http.Header
	body   string
	cut    error // comes behind the body
	err    error // comes in place of an answer
}

// wire is the network: it notes requests, and answers with its script, the last line again and again.
type wire struct {
	mu      sync.Mutex
	script  []answer
	bodies  []map[string]any
	headers []http.Header
	paths   []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	w.bodies, w.headers, w.paths = append(w.bodies, body), append(w.headers, r.Header), append(w.paths, r.URL.Path)
	a := w.script[min(len(w.bodies), len(w.script))-1]
	if a.err != nil {
		return nil, a.err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if strings.HasPrefix(a.body, "event:") {
		header.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	maps.Copy(header, a.header)
	var content io.Reader = strings.NewReader(a.body)
	if a.cut != nil {
		content = io.MultiReader(content, broken{a.cut})
	}
	return &http.Response{
		StatusCode: cmp.Or(a.status, http.StatusOK), Header: header, Body: io.NopCloser(content), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// open returns a model at the end of a wire that answers so.
func open(t *testing.T, script ...answer) (*anthropic.Model, *wire) {
	t.Helper()
	w := &wire{script: script}
	m, err := anthropic.New(anthropic.Config{Key: key, HTTP: client(w)})
	if err != nil {
		t.Fatal(err)
	}
	return m, w
}

// sse is a stream of events, given by their data.
func sse(data ...string) string {
	var b bytes.Buffer
	for _, d := range data {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(d), &e) // an event may be broken
		b.WriteString("event: " + cmp.Or(e.Type, "odd") + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

func message(id string, role abi.Role, blocks ...abi.ContentBlock) abi.Message {
	return abi.Message{ID: id, Role: role, Content: blocks}
}

func user(text string) abi.Message { return message("u", abi.RoleUser, abi.Text(text)) }

func asks(text string) llm.Request {
	return llm.Request{Model: sonnet, Messages: []abi.Message{user(text)}}
}

func kind(err error) llm.Kind {
	failure, _ := errors.AsType[*llm.Error](err)
	if failure == nil {
		return ""
	}
	return failure.Kind
}

func asJSON(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func client(w *wire) *http.Client { return &http.Client{Transport: w} }

func newModel(w *wire) (*anthropic.Model, error) {
	return anthropic.New(anthropic.Config{Key: key, HTTP: client(w)})
}

func retryAfter(err error) time.Duration {
	failure, _ := errors.AsType[*llm.Error](err)
	if failure == nil {
		return 0
	}
	return failure.RetryAfter
}
