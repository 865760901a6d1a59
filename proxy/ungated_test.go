package proxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy"
)

// ask sends a request of any method.
func ask(tb testing.TB, method, url, body string) (*reply, []byte) {
	tb.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	return do(tb, r)
}

// policyGate is a gate at tool_gate with a failure policy.
func policyGate(policy abi.FailurePolicy) hook {
	h := noRm()
	h.name, h.hooks[0].OnFailure = "guard", policy
	return h
}

// later is an upstream that makes responses in the background: those that are asked for are queued, and an answer is fetched.
func later(t *testing.T, answer, coding string) *tape {
	t.Helper()
	return newTape(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/cancel") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","status":"queued","background":true,"output":[],"usage":null}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("stream") {
			w.Header().Set("Content-Type", sseType)
		}
		if coding == "" {
			_, _ = io.WriteString(w, answer)
			return
		}
		w.Header().Set("Content-Encoding", coding)
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, answer)
		_ = z.Close()
	})
}

const (
	callOK     = `{"type":"function_call","id":"fc_ok","call_id":"ok","name":"bash","arguments":"{\"command\":\"ls\"}","status":"completed"}`
	callBad    = `{"type":"function_call","id":"fc_bad","call_id":"bad","name":"bash","arguments":"{\"command\":\"rm -rf /\"}","status":"completed"}`
	background = `{"model":"gpt-5","input":[{"role":"user","content":"clean up"}],"tools":[{"type":"function","name":"bash"}],"background":true,"store":true}`
)

func fetched(status string, items ...string) string {
	return `{"id":"resp_1","object":"response","model":"gpt-5","status":"` + status + `","background":true,"output":[` + strings.Join(items, ",") + `],"usage":{"input_tokens":9,"output_tokens":5,"total_tokens":14},"novelty":{"x":1e400}}`
}

func fetchedStream(items ...string) string {
	list := []string{`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"gpt-5","status":"in_progress","output":[]}}`}
	for i, item := range items {
		list = append(list, fmt.Sprintf(`{"type":"response.output_item.added","sequence_number":%d,"output_index":%d,"item":%s}`, 2*i+1, i, item),
			fmt.Sprintf(`{"type":"response.output_item.done","sequence_number":%d,"output_index":%d,"item":%s}`, 2*i+2, i, item))
	}
	return events(append(list, fmt.Sprintf(`{"type":"response.completed","sequence_number":%d,"response":%s}`, 2*len(items)+1, fetched("completed", items...)))...)
}

// An answer that is fetched behind its request has its calls decided about as others, however it is fetched: whole, as a stream, by its
// cancellation, before it is complete, compressed, and by other spellings of its path. Without an opinion its bytes are those that came.
func TestFetched(t *testing.T) {
	t.Parallel()
	whole, only := fetched("completed", callOK, callBad), fetched("completed", callBad)
	for name, c := range map[string]struct {
		method, path, answer, coding string
		calls                        int
	}{
		"whole":             {http.MethodGet, "/v1/responses/resp_1", whole, "", 1},
		"one call":          {http.MethodGet, "/v1/responses/resp_1", only, "", 0},
		"in progress":       {http.MethodGet, "/v1/responses/resp_1", fetched("in_progress", callBad), "", 0},
		"failed":            {http.MethodGet, "/v1/responses/resp_1", fetched("failed", callBad), "", 0},
		"stream":            {http.MethodGet, "/v1/responses/resp_1?stream=true", fetchedStream(callOK, callBad), "", 1},
		"stream, one call":  {http.MethodGet, "/v1/responses/resp_1?stream=true", fetchedStream(callBad), "", 0},
		"cancelled":         {http.MethodPost, "/v1/responses/resp_1/cancel", fetched("cancelled", callOK, callBad), "", 1},
		"compressed":        {http.MethodGet, "/v1/responses/resp_1", whole, "gzip", 1},
		"stream, encoded":   {http.MethodGet, "/v1/responses/resp_1?stream=true", fetchedStream(callBad), "gzip", 0},
		"a slash behind":    {http.MethodGet, "/v1/responses/resp_1/", whole, "", 1},
		"two slashes":       {http.MethodGet, "/v1//responses//resp_1", whole, "", 1},
		"escaped":           {http.MethodGet, "/v1/r%65sponses%2Fresp_1", whole, "", 1},
		"upper case":        {http.MethodGet, "/v1/Responses/resp_1", whole, "", 1},
		"twice the version": {http.MethodGet, "/v1/v1/responses/resp_1", whole, "", 1},
		"dots":              {http.MethodGet, "/v1/models/../responses/resp_1", whole, "", 1},
		"a query":           {http.MethodGet, "/v1/responses/resp_1?include=x&limit=1", whole, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, policy := range []abi.FailurePolicy{abi.FailRun, abi.FailIgnore} {
				up := later(t, c.answer, c.coding)
				s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, policyGate(policy))})
				if resp, got := post(t, s.url+"/v1/responses", background); resp.StatusCode != http.StatusOK || !contains(got, "queued") {
					t.Fatalf("%s %s", resp.Status, got)
				}
				resp, got := ask(t, c.method, s.url+c.path, "")
				if resp.StatusCode != http.StatusOK || contains(got, "rm -rf") || !contains(got, "1e400") || bytes.Contains(got, []byte(`"ok"`)) != (c.calls > 0) {
					t.Errorf("%s: the client got %s %s", policy, resp.Status, got)
				}
				if !contains(got, "[mortise: bash: The call was not executed: never]") {
					t.Errorf("%s: the client does not learn why: %s", policy, got)
				}
				if n := len(up.paths); n != 2 || up.paths[1] != c.method+" "+c.path {
					t.Errorf("%s: went up as %v", policy, up.paths)
				}
			}
			up := later(t, c.answer, "")
			for _, cfg := range []proxy.Config{{}, {Runtime: runtimeOf(t, quiet{})}} {
				s := start(t, up.URL, cfg)
				if _, got := ask(t, c.method, s.url+c.path, ""); string(got) != c.answer {
					t.Errorf("not the same bytes: %s", got)
				}
			}
		})
	}
}

// The rest of a stream, whose calls may have begun before, cannot be decided about.
func TestFetched_rest(t *testing.T) {
	t.Parallel()
	for policy, status := range map[abi.FailurePolicy]int{abi.FailRun: http.StatusForbidden, abi.FailIgnore: http.StatusOK} {
		up := later(t, fetchedStream(callOK), "")
		s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, policyGate(policy))})
		for _, query := range []string{"stream=true&starting_after=2", "stream=true;starting%5Fafter=2", "stream=true&%zz"} {
			if resp, got := ask(t, http.MethodGet, s.url+"/v1/responses/resp_1?"+query, ""); resp.StatusCode != status {
				t.Errorf("%s, %s: %s %s", policy, query, resp.Status, got)
			}
		}
	}
}

// ungatedPaths are requests that ask a model elsewhere, or get what one wrote, or bring content that a model reads later.
func ungatedPaths() [][3]string {
	const line = `{"requests":[{"custom_id":"1","params":{"model":"m","messages":[{"role":"user","content":"hunter2-very-secret"}]}}]}`
	return [][3]string{
		{http.MethodPost, "/v1/messages/batches", line},
		{http.MethodPost, "/v1/messages/batches?beta=true", line},
		{http.MethodGet, "/v1/messages/batches/b/results", ""},
		{http.MethodPost, "/v1/batches", `{"input_file_id":"f","endpoint":"/v1/responses","completion_window":"24h"}`},
		{http.MethodGet, "/v1/batches/b", ""},
		{http.MethodPost, "/v1/files", line},
		{http.MethodGet, "/v1/files/f/content", ""},
		{http.MethodPut, "/v1/messages", hello},
		{http.MethodGet, "/v1/messages", hello},
		{"post", "/v1/messages", hello},
		{http.MethodHead, "/v1/messages", hello},
		{http.MethodPost, "/v1/messages;x=1", hello},
		{http.MethodPost, "/v1/messages%20", hello},
		{http.MethodPost, "/v1%255Cmessages", hello},
		{http.MethodGet, "/v1/models/%255Cresponses", ""},
		{http.MethodPost, "/v1/completions", `{"model":"m","prompt":"hunter2-very-secret"}`},
		{http.MethodPost, "/v1/conversations", `{"items":[]}`},
		{http.MethodGet, "/v1/conversations/c/items", ""},
		{http.MethodGet, "/v1/responses/r/input_items", ""},
		{http.MethodPost, "/v1/responses/r/cancel", hello},
		{http.MethodGet, "/v1/chat/completions/c", ""},
		{http.MethodPost, "/to/other/v1beta/models/x:generateContent", "{}"},
		{http.MethodPost, "/to/other/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", hello},
		{http.MethodPost, "/to/other/model/m/invoke-with-response-stream", hello},
		{http.MethodPost, "/to/other/model/m/converse-stream", hello},
	}
}

// What plugins cannot see is refused where one of them fails closed, with its name and the path, in the shape of the protocol, and passes
// unchanged where none does, counted and told once. Patterns of the config let paths pass.
func TestUngated(t *testing.T) {
	t.Parallel()
	paths := ungatedPaths()
	free := [][3]string{
		{http.MethodHead, "/", ""},
		{http.MethodGet, "/", ""},
		{http.MethodGet, "/v1/models?limit=9", ""},
		{http.MethodGet, "/v1/models/org/m", ""},
		{http.MethodOptions, "/v1/messages", ""},
		{http.MethodDelete, "/v1/responses/r", ""},
		{http.MethodPost, "/", hello},
		{http.MethodPost, "/v1/embeddings", `{"model":"m","input":"hello"}`},
		{http.MethodPost, "/api/event_logging/batch", `{"events":[]}`},
		{http.MethodGet, "/v1/organizations/o/usage", ""},
	}
	up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"x":1}`)
	})
	route := func(string) string { return up.URL }
	var log strings.Builder
	redact := hook{name: "guard", hooks: []abi.Hook{{Phase: abi.StepStart, Mode: abi.ModeTransform, OnFailure: abi.FailRun}}, answer: nothingToSay}
	for name, h := range map[string]hook{"gate": policyGate(abi.FailRun), "redact": redact} {
		s := start(t, up.URL, proxy.Config{Routes: route, Runtime: runtimeOf(t, h), Ungated: []string{"/v1/files/*/info", "/v1/uploads"}})
		for _, c := range paths {
			n := len(up.paths)
			resp, got := ask(t, c[0], s.url+c[1], c[2])
			if resp.StatusCode != http.StatusForbidden || len(up.paths) != n {
				t.Errorf("%s: %s %s: %s %s", name, c[0], c[1], resp.Status, got)
			}
			if c[0] == http.MethodHead {
				continue
			}
			e, _ := decode(t, got)["error"].(map[string]any)
			text, _ := e["message"].(string)
			path, _, _ := strings.Cut(c[1], "?")
			if !strings.Contains(text, "plugin guard") || !strings.Contains(path, "%") && !strings.Contains(text, c[0]+" "+path) || !strings.Contains(text, "proxy.ungated") {
				t.Errorf("%s: %s %s: %s", name, c[0], c[1], got)
			}
			if anthropic := strings.Contains(path, "/v1/messages"); anthropic != contains(got, `"permission_error"`) {
				t.Errorf("%s: another protocol's shape: %s", c[1], got)
			}
		}
		for _, c := range append(slices.Clone(free), [3]string{http.MethodGet, "/v1/files/f/info", ""}, [3]string{http.MethodPost, "/v1/uploads/", "x"}) {
			if resp, got := ask(t, c[0], s.url+c[1], c[2]); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s %s: %s %s", name, c[0], c[1], resp.Status, got)
			}
		}
	}
	for _, h := range []hook{{}, policyGate(abi.FailIgnore)} {
		cfg := proxy.Config{Routes: route, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		want := 0
		if h.name != "" {
			cfg.Runtime, want = runtimeOf(t, h), len(paths)
		}
		s := start(t, up.URL, cfg)
		for _, c := range append(slices.Clone(paths), free...) {
			resp, got := ask(t, c[0], s.url+c[1], c[2])
			if sent, _ := up.last(); resp.StatusCode != http.StatusOK || c[0] != http.MethodHead && string(got) != `{"x":1}` || string(sent) != c[2] {
				t.Errorf("%s %s: %s %s; sent %s", c[0], c[1], resp.Status, got, sent)
			}
		}
		if n := s.Report().Counts["ungated"]; int(n) != want || strings.Count(log.String(), "proxy_ungated") != min(want, 1) {
			t.Errorf("%d are counted, want %d; logged %s", n, want, log.String())
		}
	}
	for _, pattern := range []string{"v1/files", "", "/v1/[", "*"} {
		if _, err := proxy.New(t.Context(), proxy.Config{Ungated: []string{pattern}}); err == nil {
			t.Errorf("%q is taken", pattern)
		}
	}
}

// Other spellings of the paths of models reach servers that read them as such, and are seen by plugins as well.
func TestSpellings(t *testing.T) {
	t.Parallel()
	answer := `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"bad","name":"bash","input":{"command":"rm -rf /"}},{"type":"tool_use","id":"ok","name":"bash","input":{"command":"ls"}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	body := strings.Replace(hello, `"stream":true`, `"tools":[{"name":"bash","input_schema":{"type":"object"}}]`, 1)
	for path, base := range map[string]string{
		"/v1/messages/": "", "//v1//messages": "", "/v1/x/../messages": "", "/v1/MESSAGES": "", "/v1/v1/messages": "", "/v1/m%65ssages": "", "/v1%2Fmessages": "",
		"/v1/messages?x=/v1/models": "", "/messages": "/v1", "/v1/messages": "/v1", "/": "/v1/messages", "/to/other/v1/./messages": "/api",
	} {
		up := sends(t, "application/json", answer)
		s := start(t, up.URL, proxy.Config{Anthropic: proxy.Upstream{URL: up.URL + base}, Routes: func(string) string { return up.URL + base }, Runtime: runtimeOf(t, noRm())})
		resp, got := post(t, s.url+path, body, "Anthropic-Version", "2023-06-01")
		if resp.StatusCode != http.StatusOK || contains(got, "rm -rf") || !contains(got, `"ls"`) {
			t.Errorf("%s behind %q: %s %s", path, base, resp.Status, got)
		}
	}
}

// Modes in which plugins cannot act on an answer are refused where one fails closed, and what only another API has does not switch plugins off.
func TestUngated_modes(t *testing.T) {
	t.Parallel()
	const chat = `{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"bash"}}],`
	const compacts = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}],"context_management":{"edits":[{"type":"compact_20260112"}]}}`
	whole := `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"bad","function":{"name":"bash","arguments":"rm -rf"}},{"id":"ok","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},"finish_reason":"tool_calls"}]}`
	for name, c := range map[string]struct {
		path, body string
		status     int
		header     []string
	}{
		"two answers":           {"/v1/chat/completions", chat + `"n":2}`, http.StatusForbidden, nil},
		"one and a half":        {"/v1/chat/completions", chat + `"n":1.5}`, http.StatusForbidden, nil},
		"one as a text":         {"/v1/chat/completions", chat + `"n":"1"}`, http.StatusForbidden, nil},
		"an escaped name":       {"/v1/chat/completions", chat + `"\u006e":2}`, http.StatusForbidden, nil},
		"a name twice":          {"/v1/chat/completions", chat + `"n":1,"n":2}`, http.StatusForbidden, nil},
		"provider compacts":     {"/v1/messages", compacts, http.StatusForbidden, nil},
		"integrity of no value": {"/v1/chat/completions", chat + `"system":"x-anthropic-billing-header: cch=12345"}`, http.StatusOK, nil},
		"OAuth of another":      {"/to/x/v1/chat/completions", chat + `"n":1}`, http.StatusOK, []string{"Anthropic-Beta", "oauth-2025-04-20"}},
	} {
		for _, policy := range []abi.FailurePolicy{abi.FailRun, abi.FailIgnore} {
			up := sends(t, "application/json", whole)
			s := start(t, up.URL, proxy.Config{Routes: func(string) string { return up.URL }, Runtime: runtimeOf(t, policyGate(policy))})
			resp, got := post(t, s.url+c.path, c.body, c.header...)
			switch {
			case c.status == http.StatusOK:
				if resp.StatusCode != http.StatusOK || contains(got, "rm -rf") || !contains(got, `ls`) {
					t.Errorf("%s, %s: %s %s", name, policy, resp.Status, got)
				}
			case policy == abi.FailRun:
				if resp.StatusCode != http.StatusForbidden || !contains(got, "plugin guard") || len(up.paths) != 0 {
					t.Errorf("%s, %s: %s %s", name, policy, resp.Status, got)
				}
			case resp.StatusCode != http.StatusOK || string(got) != whole:
				t.Errorf("%s, %s: %s %s", name, policy, resp.Status, got)
			}
		}
	}
	// The operator's key replaces the credential of the client.
	up := sends(t, "application/json", `{"id":"m","type":"message","content":[{"type":"tool_use","id":"b","name":"bash","input":{"command":"rm -rf"}},{"type":"tool_use","id":"ok","name":"bash","input":{"command":"ls"}}],"stop_reason":"tool_use"}`)
	s := start(t, up.URL, proxy.Config{Anthropic: proxy.Upstream{URL: up.URL, Key: "k"}, Runtime: runtimeOf(t, noRm())})
	if resp, got := post(t, s.url+"/v1/messages", hello, "Anthropic-Beta", "oauth-2025-04-20"); contains(got, "rm -rf") || !contains(got, `"ls"`) {
		t.Errorf("%s %s", resp.Status, got)
	}
}

// Answers of all requests are shown to plugins at after_inference, with what there is of usage, model, messages and session, to those that
// observe and to those that replace.
func TestAnswers_everywhere(t *testing.T) {
	t.Parallel()
	const tools, secret = `,"tools":[{"type":"function","name":"bash"}]`, "the secret plan"
	item := `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + secret + `","annotations":[]}]}`
	answer := fetched("completed", item, callOK)
	for name, c := range map[string]struct {
		method, path, body string
		said               []string
		thread             bool
	}{
		"string":        {http.MethodPost, "/v1/responses", `{"model":"m","input":"hello"` + tools + `}`, []string{"hello"}, false},
		"side":          {http.MethodPost, "/v1/responses", `{"model":"m","input":[{"role":"user","content":"name it"}]}`, []string{"name it"}, false},
		"previous":      {http.MethodPost, "/v1/responses", `{"model":"m","previous_response_id":"r","input":[{"role":"user","content":"more"}]` + tools + `}`, []string{"more"}, true},
		"conversation":  {http.MethodPost, "/v1/responses", `{"model":"m","conversation":"c","input":[{"role":"user","content":"more"}]` + tools + `}`, []string{"more"}, true},
		"only a prompt": {http.MethodPost, "/v1/responses", `{"model":"m","prompt":{"id":"p"}}`, nil, false},
		"fetched":       {http.MethodGet, "/v1/responses/resp_1", "", nil, false},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", name, stream), func(t *testing.T) {
				t.Parallel()
				up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					body := answer
					if stream {
						w.Header().Set("Content-Type", sseType)
						body = fetchedStream(item, callOK)
					}
					_, _ = io.WriteString(w, body)
				})
				for _, mode := range []abi.Mode{abi.ModeObserve, abi.ModeTransform} {
					var seen []*abi.Event
					var calls int
					s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, hook{
						name: "editor", hooks: []abi.Hook{{Phase: abi.AfterInference, Mode: mode, Messages: abi.ViewAll}, {Phase: abi.ToolGate, Mode: abi.ModeObserve}},
						answer: func(e *abi.Event) (*abi.Reply, error) {
							if e.Call != nil {
								calls++
								return nil, nil
							}
							seen = append(seen, e)
							if mode == abi.ModeObserve {
								return nil, nil
							}
							m := e.Response.Message
							m.Content = []abi.ContentBlock{abi.Text("***")}
							return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceResponse, Message: &m}}}, nil
						},
					})})
					header := []string{"Session-Id", "s", "User-Agent", "codex_cli"}
					url := s.url + c.path
					if stream && c.body == "" {
						url += "?stream=true"
					}
					var got []byte
					if c.method == http.MethodGet {
						_, got = ask(t, c.method, url, c.body)
					} else {
						_, got = post(t, url, c.body, header...)
					}
					wait(t, "the request ends", func() bool { return s.Report().Counts["active"] == 0 })
					if len(seen) != 1 || calls != 1 {
						t.Fatalf("%s: %d answers and %d calls were shown", mode, len(seen), calls)
					}
					e := seen[0]
					var said []string
					for _, m := range e.Messages {
						said = append(said, m.Text())
					}
					r := e.Response
					if r.Model != "gpt-5" || r.Message.Text() != secret || len(r.Message.ToolCalls) != 1 || r.Usage == nil || r.Usage.TotalTokens != 14 || r.StopReason != abi.StopToolUse || !slices.Equal(said, c.said) {
						t.Errorf("%s: saw %v and %+v", mode, said, r)
					}
					if (e.Run.ThreadID != "") != c.thread || c.method == http.MethodPost && e.Run.SessionID != "s" {
						t.Errorf("%s: the run is %+v", mode, e.Run)
					}
					if mode == abi.ModeTransform && (contains(got, secret) || !contains(got, "***") || !contains(got, `"ok"`)) || mode == abi.ModeObserve && !contains(got, secret) {
						t.Errorf("%s: the client got %s", mode, got)
					}
				}
			})
		}
	}
}

// An answer that is still to be made is not shown, and one that failed is not passed by a plugin that fails closed.
func TestFetched_incomplete(t *testing.T) {
	t.Parallel()
	n := 0
	s := func(answer string) *stand {
		return start(t, later(t, answer, "").URL, proxy.Config{Runtime: runtimeOf(t, answers(abi.FailRun, func(r *abi.Response) (*abi.Message, error) {
			n++
			return &abi.Message{Content: []abi.ContentBlock{abi.Text("***")}}, nil
		}))})
	}
	one := s(fetched("queued"))
	if _, got := post(t, one.url+"/v1/responses", background); !contains(got, "queued") || n != 0 {
		t.Errorf("%d times shown; the client got %s", n, got)
	}
	if _, got := ask(t, http.MethodGet, one.url+"/v1/responses/resp_1", ""); string(got) != fetched("queued") || n != 0 {
		t.Errorf("%d times shown; the client got %s", n, got)
	}
	const text = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"the secret"}]}`
	for i, status := range []string{"failed", "in_progress"} {
		if _, got := ask(t, http.MethodGet, s(fetched(status, text)).url+"/v1/responses/resp_1", ""); contains(got, "the secret") || n != i+1 {
			t.Errorf("%s: the client got %s", status, got)
		}
	}
}

// A request whose answer is fetched later offers no tools of plugins, which nothing would run then, whatever its server takes for true.
func TestFetched_tools(t *testing.T) {
	t.Parallel()
	for value, offers := range map[string]bool{"true": false, `"true"`: false, "1": false, "false": true, "null": true} {
		up := later(t, fetched("completed"), "")
		s := start(t, up.URL, proxy.Config{Tools: &offered{}, Runtime: runtimeOf(t, quiet{})})
		post(t, s.url+"/v1/responses", strings.Replace(background, "true", value, 1))
		if sent, _ := up.last(); contains(sent, "lookup") != offers {
			t.Errorf("%s: sent %s", value, sent)
		}
	}
}

// What Codex has the provider compact is a conversation of which plugins took something out.
func TestRedacted_compact(t *testing.T) {
	t.Parallel()
	up := newTape(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"output":[]}`) })
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, masking(func() error { return nil }))})
	resp, got := post(t, s.url+"/v1/responses/compact", `{"model":"m","input":[{"role":"user","content":"the key is `+hunter+`"}]}`)
	if sent, _ := up.last(); resp.StatusCode != http.StatusOK || contains(sent, hunter) || !contains(sent, "***") {
		t.Errorf("%s %s: sent %s", resp.Status, got, sent)
	}
}
