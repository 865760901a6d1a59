package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// small is a config in which a test changes words.
const small = `
version: 1
models:
  main: {provider: anthropic, name: $MODEL, base_url: "$URL", key: {file: key}, max_tokens: 4000}
agents:
  worker: {model: main, system_prompt: PROMPT-1}
default_agent: worker
mcp:
  - {name: works, command: ["$SELF"], env: {MORTISE_E2E_TOOL_LOG: "$LOG", TOKEN: ghp_hunter22}, required: true}
plugins:
  - {name: index, module: $GUESTS/index.wasm}
  - {name: redact, module: redact.wasm}
compaction:
  threshold_tokens: 100000
  summarizer: {policy: ledger}
limits: {timeout: 60s}
serve:
  grace: 10s
`

// echoes answers with the system prompt and the tools that the model was offered.
type echoes struct {
	mu   sync.Mutex
	hold map[string]chan struct{} // an answer to this text waits
}

func (e *echoes) reply(q providertest.Query) providertest.Answer {
	text := q.Messages[len(q.Messages)-1].Text()
	e.mu.Lock()
	hold := e.hold[text]
	e.mu.Unlock()
	if hold != nil {
		<-hold
	}
	var tools []string
	for _, t := range q.Tools {
		tools = append(tools, t.Name)
	}
	return providertest.Answer{Content: []abi.ContentBlock{abi.Text("system=" + q.System + " tools=" + strings.Join(tools, ",") + " said=" + text)}}
}

// reloader is a world whose config is changed by words.
type reloader struct {
	*world

	text   string
	client *client
	token  string
	model  *echoes
}

func newReloader(t *testing.T) *reloader {
	t.Helper()
	model := &echoes{hold: map[string]chan struct{}{}}
	r := &reloader{text: small, model: model}
	r.world = newWorldOf(t, r.text, model.reply)
	r.copyGuest(t, "redact.wasm", "redact.wasm")
	r.client = &client{w: r.world, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(r.client.http.CloseIdleConnections)
	r.start(t)
	return r
}

func (r *reloader) copyGuest(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile("../../testdata/guests/" + from)
	must(t, err)
	must(t, os.WriteFile(r.path(to+".new"), b, 0o600))
	must(t, os.Rename(r.path(to+".new"), r.path(to)))
}

// change replaces words of the config.
func (r *reloader) change(t *testing.T, pairs ...string) {
	t.Helper()
	r.text = strings.NewReplacer(pairs...).Replace(r.text)
	r.configure(t, r.text)
}

// reload returns the status and what the server answers.
func (r *reloader) reload(ctx context.Context, t *testing.T) (status int, changed []string, detail string) {
	t.Helper()
	var out struct {
		Changed      []string
		Detail, Hint string
	}
	status, data := r.do(ctx, t, true, http.MethodPost, "/v1/reload", "", nil)
	if err := json.Unmarshal(data, &out); err != nil {
		t.Errorf("reload: %d %s", status, data)
	}
	return status, out.Changed, out.Detail
}

func (r *reloader) reloaded(ctx context.Context, t *testing.T, want ...string) {
	t.Helper()
	status, changed, detail := r.reload(ctx, t)
	if status != http.StatusOK || !slices.Equal(changed, want) {
		t.Fatalf("reload: %d %q %s, want %q", status, changed, detail, want)
	}
}

func (r *reloader) refused(ctx context.Context, t *testing.T, words ...string) {
	t.Helper()
	status, _, detail := r.reload(ctx, t)
	if strings.Contains(detail+r.said(), "hunter22") {
		t.Errorf("a value of the config is shown: %s; %s", detail, r.said())
	}
	for _, w := range words {
		if status != http.StatusUnprocessableEntity || !strings.Contains(detail, w) {
			t.Errorf("reload: %d %s, want %q", status, detail, w)
		}
	}
}

// do sends a request with the token.
func (r *reloader) do(ctx context.Context, t *testing.T, admin bool, method, path, accept string, body any) (int, []byte) {
	t.Helper()
	var payload string
	if body != nil {
		b, err := json.Marshal(body)
		must(t, err)
		payload = string(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.at(admin)+path, strings.NewReader(payload))
	must(t, err)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.http.Do(req)
	if err != nil {
		t.Errorf("%s %s: %v; %s", method, path, err, r.said())
		return 0, nil
	}
	defer resp.Body.Close()
	var out strings.Builder
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		out.Write(buf[:n])
		if err != nil {
			return resp.StatusCode, []byte(out.String())
		}
	}
}

// ask runs a text and returns the whole stream.
func (r *reloader) ask(ctx context.Context, t *testing.T, text string) string {
	t.Helper()
	status, data := r.do(ctx, t, false, http.MethodPost, "/v1/runs", "text/event-stream", map[string]any{"input": text})
	if status != http.StatusOK || !strings.Contains(string(data), "event: settled") {
		t.Errorf("run: %d %.2000s; %s", status, data, r.said())
	}
	return string(data)
}

func contains(t *testing.T, text, part string, want bool) {
	t.Helper()
	if strings.Contains(text, part) != want {
		t.Errorf("%q is in it: %v, in %.3000s", part, !want, text)
	}
}

// TestReload: one wrong key changes nothing and is named; what a restart needs is named; prompts, plugins, MCP
// servers, policies and tokens change for what begins after the reload.
func TestReload(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	r := newReloader(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	first := r.ask(ctx, t, "one")
	contains(t, first, "PROMPT-1", true)
	contains(t, first, "mcp__works__work", true)
	contains(t, first, `"plugin":"index"`, true)

	good := r.text
	for key, word := range map[string]string{
		"max_roundz: 3": "max_roundz", "plugins: [nobody]": "nobody", "max_rounds: -1": "max_rounds", "system_prompt_file: none": "system_prompt",
	} {
		r.change(t, "system_prompt: PROMPT-1}", "system_prompt: PROMPT-2, "+key+"}")
		r.refused(ctx, t, word)
		r.text = good
	}
	r.change(t, "required: true", "required: true, tols: [a]")
	r.refused(ctx, t, `mortise.yaml:9:`, `there is no key "tols" in mcp[0]`)
	r.text = good
	r.change(t, "PROMPT-1", "PROMPT-2", "\n  grace: 10s", " {grace: 10s, workers: 3, lease: 3s}", "- {name: redact", "- {name: more, module: none.wasm}\n  - {name: redact")
	r.refused(ctx, t, "serve.lease, serve.workers", "restart")
	r.text = good
	r.change(t, "PROMPT-1", "PROMPT-2", "- {name: redact", "- {name: more, module: none.wasm}\n  - {name: redact")
	r.refused(ctx, t, "none.wasm")
	r.text = good
	r.change(t, "PROMPT-1", "PROMPT-2", "command: [\"$SELF\"]", "command: [\"./nobody\"]")
	r.refused(ctx, t, "nobody")
	r.text = good
	contains(t, r.ask(ctx, t, "two"), "PROMPT-1", true)

	r.change(t, "PROMPT-1", "PROMPT-2")
	r.reloaded(ctx, t, "agents.worker")
	r.reloaded(ctx, t)
	contains(t, r.ask(ctx, t, "three"), "PROMPT-2", true)

	r.change(t, "policy: ledger", "policy: gc", "100000", "90000", "  - {name: index, module: $GUESTS/index.wasm}\n", "", "name: works", "name: other")
	r.reloaded(ctx, t, "plugins.index", "mcp.other", "mcp.works", "compaction")
	third := r.ask(ctx, t, "four")
	contains(t, third, `"plugin":"index"`, false)
	contains(t, third, "mcp__works__work", false)
	contains(t, third, "mcp__other__work", true)
	_, policies := r.do(ctx, t, true, http.MethodGet, "/v1/policies/summarizer/history", "", nil)
	contains(t, string(policies), "the config has changed", true)
	r.stop(t)
}

// TestReload_tokens: a token that is changed, added or taken away counts from the next request on.
func TestReload_tokens(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	r := newReloader(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const one, two = "token-one-0123456789", "token-two-0123456789"
	must(t, os.WriteFile(r.path("token"), []byte(one), 0o600))
	r.change(t, "grace: 10s", "grace: 10s\n  tokens: [{name: ops, file: token, scopes: [admin]}]")
	r.reloaded(ctx, t, "serve.tokens")
	status := func(token string) int {
		r.token = token
		code, _ := r.do(ctx, t, true, http.MethodGet, "/v1/status", "", nil)
		return code
	}
	if a, b := status(""), status(one); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("with a token: %d without it, %d with it", a, b)
	}
	must(t, os.WriteFile(r.path("token"), []byte(two), 0o600))
	r.reloaded(ctx, t)
	if a, b := status(one), status(two); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("rotated: %d with the old one, %d with the new one", a, b)
	}
	must(t, os.WriteFile(r.path("token"), []byte("short"), 0o600))
	r.refused(ctx, t, "5 bytes")
	if b := status(two); b != http.StatusOK {
		t.Errorf("after a refusal: %d", b)
	}
	r.stop(t)
}

// TestReload_underWay: a run ends with the agent, the plugins and the server with which it began, and what
// was replaced is closed after that. Meanwhile SIGHUP and requests reload at once, and no run fails.
func TestReload_underWay(t *testing.T) {
	t.Parallel()
	r := newReloader(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	held := make(chan struct{})
	r.model.hold["held"] = held
	answers := make(chan string, 1)
	go func() { answers <- r.ask(ctx, t, "held") }()
	for r.executing(ctx, t) == 0 && ctx.Err() == nil {
		pause(ctx, retry)
	}
	r.change(t, "PROMPT-1", "PROMPT-2", "  - {name: index, module: $GUESTS/index.wasm}\n", "")
	r.reloaded(ctx, t, "agents.worker", "plugins.index")

	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() {
			for n := range 4 {
				contains(t, r.ask(ctx, t, fmt.Sprintf("client %d %d", i, n)), "PROMPT-1", false)
			}
		})
	}
	for n := range 6 {
		r.change(t, fmt.Sprintf("PROMPT-%d", n+2), fmt.Sprintf("PROMPT-%d", n+3))
		if n%2 == 0 {
			clients.Go(func() {
				if status, _, detail := r.reload(ctx, t); status != http.StatusOK {
					t.Errorf("reload: %d %s", status, detail)
				}
			})
		}
		must(t, r.procs[0].cmd.Process.Signal(syscall.SIGHUP))
	}
	clients.Wait()
	close(held)
	contains(t, <-answers, `"plugin":"index"`, true)
	for text := ""; !strings.Contains(text, "PROMPT-8") && ctx.Err() == nil; text = r.ask(ctx, t, "last") {
		pause(ctx, retry)
	}
	r.stop(t)
	if said := r.said(); strings.Contains(said, "does not end") || strings.Contains(said, "DATA RACE") {
		t.Error(said)
	}
}

func (r *reloader) executing(ctx context.Context, t *testing.T) (n int) {
	t.Helper()
	var out struct{ Executing int }
	_, data := r.do(ctx, t, true, http.MethodGet, "/v1/status", "", nil)
	must(t, json.Unmarshal(data, &out))
	return out.Executing
}
