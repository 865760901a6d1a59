package openai_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire answers requests in place of a server, and keeps the last one.
type wire struct {
	status int
	media  string
	header http.Header
	body   string
	// fails ends the body with an error.
	fails error

	request *http.Request
	sent    string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.request, w.sent = r, string(data)
	header := w.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.media == "" {
		w.media = "application/json"
		if strings.HasPrefix(w.body, "data:") || strings.HasPrefix(w.body, "event:") || w.body == "" {
			w.media = "text/event-stream"
		}
	}
	header.Set("Content-Type", w.media)
	var body io.Reader = strings.NewReader(w.body)
	if w.fails != nil {
		body = io.MultiReader(body, failing{w.fails})
	}
	return &http.Response{StatusCode: w.status, Header: header, Body: io.NopCloser(body), Request: r}, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// secret is the key of all models here. It must be in no error.
const secret = "sk-test-0123456789abcdef"

func open(t *testing.T, transport http.RoundTripper, cfg openai.Config) *openai.Model {
	t.Helper()
	cfg.Key, cfg.HTTP = secret, &http.Client{Transport: transport}
	m, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// streamed collects what Stream emits.
func streamed(ctx context.Context, m *openai.Model, r llm.Request) (*abi.Response, error) {
	return llm.Collect(func(emit func(llm.Delta) bool) error { return m.Stream(ctx, r, emit) })
}

func question(text string) llm.Request {
	return llm.Request{
		ThreadID: "thread-1", RunID: "run-1", Step: 1, Model: "gpt-5",
		Messages: []abi.Message{{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}},
	}
}

// events writes a stream.
func events(data ...string) string {
	var out strings.Builder
	for _, d := range data {
		out.WriteString("data: " + d + "\n\n")
	}
	return out.String()
}
