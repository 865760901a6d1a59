package serve_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mind is a model that does what the last message says:
//
//	say WORDS   streams the words
//	ask         calls the tool ask, which waits for a decision, and then says its result
//	hold        waits until it is released, and says so
//	slow        calls the tool slow, which waits until it is cancelled
//	flood       streams 2 MiB after it was released
//	fail        fails for good
//	bill        says a word, and what it cost
//	limited     has a rate limit for an hour, the first time, and then says a word
//	stutter     thinks and breaks off once, and then says a word
type mind struct {
	begun, release chan struct{}
	broke          atomic.Bool
}

func newMind() *mind {
	return &mind{begun: make(chan struct{}, 1000), release: make(chan struct{})}
}

func (*mind) Infer(context.Context, llm.Request) (*abi.Response, error) { panic("it streams") }

func (m *mind) Stream(ctx context.Context, r llm.Request, emit func(llm.Delta) bool) error {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == abi.RoleTool {
		emit(llm.Delta{Type: llm.DeltaText, Text: last.Text()})
		return nil
	}
	what, rest, _ := strings.Cut(last.Text(), " ")
	switch what {
	case "say":
		for word := range strings.SplitSeq(rest, " ") {
			emit(llm.Delta{Type: llm.DeltaText, Text: word})
		}
	case "ask", "slow", "inquire", "form":
		emit(llm.Delta{Type: llm.DeltaCallStart, CallID: "call_" + what, Name: what})
		emit(llm.Delta{Type: llm.DeltaCallArguments, CallID: "call_" + what, Text: `{"a":1}`})
	case "bill":
		emit(llm.Delta{Type: llm.DeltaText, Text: "done"})
		emit(llm.Delta{Type: llm.DeltaUsage, Usage: &abi.Usage{PromptTokens: 100, CacheReadTokens: 60, CompletionTokens: 7}})
	case "limited":
		if !m.broke.Swap(true) {
			return &llm.Error{Kind: llm.KindRateLimited, RetryAfter: time.Hour}
		}
		emit(llm.Delta{Type: llm.DeltaText, Text: "well"})
	case "stutter":
		if !m.broke.Swap(true) {
			emit(llm.Delta{Type: llm.DeltaReasoning, Text: "well"})
			emit(llm.Delta{Type: llm.DeltaCallStart, CallID: "call_lost", Name: "ask"})
			return &llm.Error{Kind: llm.KindStreamInterrupted, Message: "it broke off"}
		}
		emit(llm.Delta{Type: llm.DeltaReasoning, Text: "again"})
		emit(llm.Delta{Type: llm.DeltaText, Text: "well"})
	case "hold", "flood":
		if what == "flood" {
			emit(llm.Delta{Type: llm.DeltaText, Text: "first"})
		}
		m.begun <- struct{}{}
		select {
		case <-m.release:
		case <-ctx.Done():
			return ctx.Err()
		}
		for range map[string]int{"flood": 64}[what] {
			emit(llm.Delta{Type: llm.DeltaText, Text: strings.Repeat("x", 32<<10)})
		}
		emit(llm.Delta{Type: llm.DeltaText, Text: "released"})
	default:
		return &llm.Error{Kind: llm.KindInvalidRequest, Message: "no"}
	}
	return nil
}

// tools are ask, slow, and two that ask for more than a permission.
type tools struct{ m *mind }

func (tools) Tools() []abi.Tool {
	return []abi.Tool{{Name: "ask"}, {Name: "slow"}, {Name: "inquire"}, {Name: "form"}}
}

func (s tools) CallTool(ctx context.Context, c abi.ToolCall) (abi.ToolResult, error) {
	switch {
	case c.Name == "slow":
		s.m.begun <- struct{}{}
		<-ctx.Done()
		return abi.ToolResult{}, ctx.Err()
	case c.Resume == nil:
		k := &abi.SuspendTicket{ID: "ticket", Mode: abi.ResumePassDecision}
		switch c.Name {
		case "inquire":
			k.Action = "user_input"
		case "form":
			k.ResponseSchema = map[string]any{"type": "object"}
		}
		return abi.ToolResult{Status: abi.ToolPending, Message: "really?", Ticket: k}, nil
	}
	data, _ := json.Marshal(c.Resume.Result)
	return abi.ToolResult{Message: "decided " + string(data)}, nil
}

// world is a process with a server.
type world struct {
	t *testing.T
	// ctx bounds what the test waits for, so that a wait without an end has the name of its test.
	ctx     context.Context
	mind    *mind
	store   store.Store
	runtime *mortise.Runtime
	server  *serve.Server
	http    *httptest.Server
}

// options change a world.
type options struct {
	store   store.Store
	mind    *mind
	runtime func(*mortise.Config)
	serve   func(*serve.Config)
	idle    bool // nothing is executed
}

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, mind: o.mind, store: o.store}
	if w.store == nil {
		w.store = memstore.New()
	}
	if w.mind == nil {
		w.mind = newMind()
	}
	cfg := mortise.Config{Store: w.store, Agents: map[string]mortise.Agent{"a": {Model: w.mind, Tools: tools{w.mind}}}}
	if o.runtime != nil {
		o.runtime(&cfg)
	}
	var err error
	w.runtime, err = mortise.New(t.Context(), cfg)
	must(t, err)
	if !o.idle {
		must(t, w.runtime.Start(t.Context()))
	}
	sc := serve.Config{Runtime: w.runtime, Agents: []serve.AgentInfo{{Name: "a"}}}
	if o.serve != nil {
		o.serve(&sc)
	}
	w.server, err = serve.New(sc)
	must(t, err)
	w.http = httptest.NewUnstartedServer(nil)
	w.http.Config = w.server.HTTP(w.server.Admin())
	w.http.Start()
	t.Cleanup(w.close)
	return w
}

func (w *world) close() {
	if err := w.server.Close(); err != nil {
		w.t.Error(err)
	}
	w.http.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // what is under way is given back
	_ = w.runtime.Close(ctx)
}

// sqlite opens stores of one file.
func sqlite(t *testing.T) func() store.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mailbox.db")
	return func() store.Store {
		s, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
		must(t, err)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return s
	}
}

// answer is a response.
type answer struct {
	*http.Response

	body []byte
}

func (a *answer) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// open sends a request: the header is name, value, name, value. The caller closes the body.
func (w *world) open(method, path, body string, header ...string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, method, w.http.URL+path, strings.NewReader(body))
	must(w.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Client().Do(req)
	must(w.t, err)
	return resp
}

// do sends a request, and reads its response to the end.
func (w *world) do(method, path, body string, header ...string) *answer {
	w.t.Helper()
	resp := w.open(method, path, body, header...)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return &answer{Response: resp, body: data}
}

// want sends a request, and wants a status.
func (w *world) want(status int, method, path, body string, header ...string) *answer {
	w.t.Helper()
	a := w.do(method, path, body, header...)
	if a.StatusCode != status {
		w.t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, a.StatusCode, status, a.body)
	}
	return a
}

type ids struct {
	Run      string `json:"run_id"`
	Thread   string `json:"thread_id"`
	Dispatch string `json:"dispatch_id"`
	Status   string `json:"status"`
	Repeated bool   `json:"repeated"`
}

func (w *world) submit(path, body string, header ...string) (out ids) {
	w.t.Helper()
	w.want(http.StatusAccepted, http.MethodPost, path, body, header...).decode(w.t, &out)
	return out
}

// event is one of a stream.
type event struct{ id, name, data string }

func (e event) field(t *testing.T, name string) any {
	t.Helper()
	var v map[string]any
	must(t, json.Unmarshal([]byte(e.data), &v))
	return v[name]
}

// run is the id of an event's run.
func (e event) run(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(e.field(t, "run_id"))
}

// stream reads server-sent events.
type stream struct {
	t    *testing.T
	resp *http.Response
	scan *bufio.Scanner
}

const eventStream = "text/event-stream"

// follow opens a stream of a run, after an event.
func (w *world) follow(run, after string) *stream {
	w.t.Helper()
	return w.stream(http.MethodGet, "/v1/runs/"+run+"/events", "", "Last-Event-ID", after)
}

func (w *world) stream(method, path, body string, header ...string) *stream {
	w.t.Helper()
	return w.read(w.open(method, path, body, append(header, "Accept", eventStream)...)) //nolint:bodyclose // the stream closes it
}

func (w *world) read(resp *http.Response) *stream {
	w.t.Helper()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != eventStream {
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		w.t.Fatalf("%s %s: %d %s", resp.Request.Method, resp.Request.URL, resp.StatusCode, data)
	}
	s := &stream{t: w.t, resp: resp, scan: bufio.NewScanner(resp.Body)}
	s.scan.Buffer(nil, 8<<20)
	w.t.Cleanup(s.close)
	return s
}

func (s *stream) close() { _ = s.resp.Body.Close() }

// next returns the next event, or false at the end.
func (s *stream) next() (e event, ok bool) {
	for s.scan.Scan() {
		name, value, _ := strings.Cut(s.scan.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				return e, true
			}
		}
	}
	return e, false
}

// comments reads up to the n-th comment from here.
func (s *stream) comments(n int) {
	s.t.Helper()
	for n > 0 {
		if !s.scan.Scan() {
			s.t.Fatalf("the stream ended: %v", s.scan.Err())
		}
		if s.scan.Text() == ":" {
			n--
		}
	}
}

// until reads up to an event of a name.
func (s *stream) until(name string) (list []event) {
	s.t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended without %s, after %v: %v", name, names(list), s.scan.Err())
		}
		if list = append(list, e); e.name == name {
			return list
		}
	}
}

// rest reads to the end.
func (s *stream) rest() (list []event) {
	for e, ok := s.next(); ok; e, ok = s.next() {
		list = append(list, e)
	}
	return list
}

func names(list []event) (out []string) {
	for _, e := range list {
		out = append(out, e.name)
	}
	return out
}

// told are the names without those of phases.
func told(list []event) string {
	var out []string
	for _, e := range list {
		if e.name != "phase" {
			out = append(out, e.name)
		}
	}
	return strings.Join(out, " ")
}

// say is a body.
func say(text string, more ...string) string {
	input, _ := json.Marshal(text)
	return `{"input":` + string(input) + strings.Join(append([]string{""}, more...), ",") + `}`
}

type problem struct {
	Type, Title, Detail, Hint, Field string
	Status                           int
}

// refused sends a request that is refused, and checks the problem.
func (w *world) refused(status int, method, path, body string, header ...string) (p problem) {
	w.t.Helper()
	a := w.want(status, method, path, body, header...)
	a.decode(w.t, &p)
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" || p.Status != status || cmp.Or(p.Type, p.Title, p.Detail) == "" || p.Title == "" {
		w.t.Errorf("%s %s: problem is %s (%s)", method, path, a.body, got)
	}
	for _, secret := range []string{"serve.", "mailbox.", "agentrun", "/root/", "/home/", ".go:", "Go struct", "json:"} {
		if strings.Contains(string(a.body), secret) {
			w.t.Errorf("%s %s: the problem has %q: %s", method, path, secret, a.body)
		}
	}
	return p
}
