package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/llm"
)

// links is what the server of the demo has beyond its own parts: a scripted model. The command mortise links clients of all providers and
// databases, and SQLite, which take longer to compile than everything else.
func links() program.Links {
	return program.Links{
		Providers: []program.Provider{{Name: "scripted", Open: func(c program.Connection) (llm.Model, error) { return scripted{c.BaseURL}, nil }}},
	}
}

// scripted is a model of the server: it asks the script at a URL, which is in the process that tells the story.
type scripted struct{ url string }

// Infer returns the next answer of the script, whatever the request has.
func (m scripted) Infer(ctx context.Context, _ llm.Request) (*abi.Response, error) {
	status, body, err := call(ctx, http.MethodPost, m.url, "application/json", nil)
	if err != nil || status != http.StatusOK {
		return nil, &llm.Error{Kind: llm.KindProvider, Message: fmt.Sprintf("script: status %d", status), Err: err}
	}
	out := &abi.Response{}
	return out, json.Unmarshal([]byte(body), out)
}

// script is the model: in each run it reads so many parts of a document, one in each step, and then answers.
type script struct {
	url    string
	server *http.Server
	// swapped is closed when the operator has swapped the policy: the second run waits for that.
	swapped chan struct{}

	mu       sync.Mutex
	parts    int // that the run has read
	runs     int
	requests int
}

// partsOfRun is how many parts a run reads. In the second run, the model waits after waitAfter of them.
const (
	partsOfRun = 9
	waitAfter  = 2
)

// pace is how long the model takes for an answer.
const pace = 20 * time.Millisecond

func documents() []string {
	return []string{"docs/config.md", "docs/http.md", "docs/conformance.md"}
}

// listen answers scripted models on loopback.
func (s *script) listen(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.url, s.server = "http://"+l.Addr().String(), &http.Server{Handler: s, ReadHeaderTimeout: longest}
	go func() { _ = s.server.Serve(l) }()
	return nil
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, wait := s.next()
	select {
	case <-time.After(pace):
	case <-r.Context().Done():
	}
	if wait {
		select {
		case <-s.swapped:
		case <-r.Context().Done():
		}
	}
	_ = json.NewEncoder(w).Encode(a)
}

func (s *script) next() (a *abi.Response, wait bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	path := documents()[s.runs%len(documents())]
	if s.parts == partsOfRun {
		s.parts, s.runs = 0, s.runs+1
		return answer(abi.StopEndTurn, "I have read "+path+"."), false
	}
	call := abi.ToolCall{
		ID: fmt.Sprintf("call_%d_%d", s.runs, s.parts), Name: "mcp__files__read", Arguments: map[string]any{"path": path, "part": s.parts},
	}
	s.parts++
	return answer(abi.StopToolUse, fmt.Sprintf("I read part %d of %s.", s.parts, path), call), s.runs == 1 && s.parts == waitAfter
}

func answer(stop abi.StopReason, text string, calls ...abi.ToolCall) *abi.Response {
	return &abi.Response{StopReason: stop, Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text)}, ToolCalls: calls}}
}

// answered is how many requests the script has answered.
func (s *script) answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}
