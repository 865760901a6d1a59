package providertest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/llm/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server and a client that the test ends.
type world struct {
	t *testing.T
	*providertest.Server
	client *http.Client
}

func open(t *testing.T, cfg providertest.Config) *world {
	t.Helper()
	s, err := providertest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{t, s, &http.Client{Transport: transport}}
}

// post sends a body with the headers that both vendors want, changed by pairs of names and
// values; an empty value deletes.
func (w *world) post(path, body string, headers ...string) (status int, answer string, h http.Header) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL()+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("X-Api-Key", w.Key())
	r.Header.Set("Authorization", "Bearer "+w.Key())
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	answered, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answered.Body.Close() }()
	b, err := io.ReadAll(answered.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answered.StatusCode, string(b), answered.Header
}

// message returns the words of an error, which both vendors have at the same place, and its type and code.
func message(t *testing.T, body string) (text, kind, code string) {
	t.Helper()
	var e struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&e); err != nil {
		t.Fatalf("the error is no JSON: %v: %s", err, body)
	}
	return e.Error.Message, e.Error.Type, e.Error.Code
}

// rejection is a body that must be refused with a status and words.
type rejection struct {
	name, body string
	status     int
	want       string
}

func (w *world) rejects(path string, cases []rejection) {
	w.t.Helper()
	for _, c := range cases {
		status, body, _ := w.post(path, c.body)
		if c.status == 0 {
			c.status = http.StatusBadRequest
		}
		if text, _, _ := message(w.t, body); status != c.status || !strings.Contains(text, c.want) {
			w.t.Errorf("%s: status %d, want %d; got %q, want %q", c.name, status, c.status, text, c.want)
		}
	}
}
