package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// forward sends a request for a model through the proxy of mortise serve, as an agent does.
func (r *reloader) forward(ctx context.Context, t *testing.T, text, token string) (int, string) {
	t.Helper()
	return r.post(ctx, t, "/v1/messages", `{"model":"`+model+`","max_tokens":100,"tools":[{"name":"Bash","description":"runs","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"go"},`+
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"x"}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"`+text+`"}]}]}`, token)
}

// post sends a body to the proxy of mortise serve.
func (r *reloader) post(ctx context.Context, t *testing.T, path, body, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.procs[0].proxy+path, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", r.provider.Key())
	if token != "" {
		req.Header.Set("X-Mortise-Token", token)
	}
	resp, err := r.client.http.Do(req)
	if err != nil {
		t.Errorf("%s: %v; %s", body, err, r.said())
		return 0, ""
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(data)
}

// TestServe_proxy: mortise serve forwards agents' requests through its plugins. A reload changes the plugins and the token for
// requests that begin after it, while one under way ends with those that it began with.
func TestServe_proxy(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	text := strings.Replace(small, "grace: 10s", "grace: 10s\n  proxy: 127.0.0.1:0", 1) + "proxy:\n  anthropic: {url: \"$URL\"}\n  ungated: [/v1/files]\n"
	m := &echoes{hold: map[string]chan struct{}{}}
	r := &reloader{text: text, model: m}
	r.world = newWorldOf(t, text, m.reply)
	r.copyGuest(t, "redact.wasm", "redact.wasm")
	r.client = &client{w: r.world, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(r.client.http.CloseIdleConnections)
	r.start(t)

	secret := "ghp_" + strings.Repeat("a1B2", 9)
	status, answer := r.forward(ctx, t, "one "+secret, "")
	if status != http.StatusOK || !strings.Contains(answer, "said=one") || strings.Contains(answer, secret) {
		t.Errorf("with redact: %d %s", status, answer)
	}
	for path, refused := range map[string]bool{"/v1/messages/batches": true, "/v1/files": false} { // redact fails closed
		status, answer = r.post(ctx, t, path, `{"requests":[]}`, "")
		if strings.Contains(answer, "plugin redact") != refused || refused && (status != http.StatusForbidden || !strings.Contains(answer, "proxy.ungated")) {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if _, metrics := r.do(ctx, t, true, http.MethodGet, "/metrics", "", nil); !strings.Contains(string(metrics), `mortise_proxy_events{what="requests"} 3`) {
		t.Errorf("the request is not in the metrics: %.2000s", metrics)
	}

	r.listed(ctx, t, secret)
	entered, held := make(chan string, 1), make(chan struct{})
	m.hold["held"] = held
	go func() {
		_, answer := r.forward(ctx, t, "held", "")
		entered <- answer
	}()
	for r.forwarding(ctx, t) == 0 && ctx.Err() == nil {
		pause(ctx, retry)
	}
	must(t, os.WriteFile(r.path("token"), []byte("token-of-the-proxy-0123"), 0o600))
	r.change(t, "  - {name: redact, module: redact.wasm}\n", "", "proxy:\n  anthropic", "proxy:\n  token: {file: token}\n  anthropic")
	r.reloaded(ctx, t, "plugins.redact", "proxy")
	if status, answer := r.forward(ctx, t, "two", ""); status != http.StatusForbidden {
		t.Errorf("without the token: %d %s", status, answer)
	}
	if status, answer := r.forward(ctx, t, "two "+secret, "token-of-the-proxy-0123"); status != http.StatusOK || !strings.Contains(answer, secret) {
		t.Errorf("without redact: %d %s", status, answer)
	}
	close(held)
	if answer := <-entered; !strings.Contains(answer, "said=held") {
		t.Errorf("the request under way ended with %s", answer)
	}

	good := r.text
	r.change(t, "proxy: 127.0.0.1:0", "proxy: 127.0.0.1:1")
	r.refused(ctx, t, "serve.proxy", "restart")
	r.text = good
	r.change(t, "  token: {file: token}\n", "", "proxy: 127.0.0.1:0", "proxy: 0.0.0.0:0")
	r.refused(ctx, t, "serve.proxy", "no token")
	r.stop(t)
}

// listed checks that the conversation that was forwarded is in the lists of the server, as its own are.
func (r *reloader) listed(ctx context.Context, t *testing.T, secret string) {
	t.Helper()
	get := func(path string, into any) string {
		status, data := r.do(ctx, t, false, http.MethodGet, path, "", nil)
		if status != http.StatusOK || json.Unmarshal(data, into) != nil {
			t.Fatalf("%s: %d %s", path, status, data)
		}
		return string(data)
	}
	var threads struct {
		Threads []struct {
			ID       string
			Messages int
		}
	}
	get("/v1/threads", &threads)
	if len(threads.Threads) != 1 || !strings.HasPrefix(threads.Threads[0].ID, "proxy-") || threads.Threads[0].Messages != 3 {
		t.Fatalf("listed are %+v", threads.Threads)
	}
	path := "/v1/threads/" + threads.Threads[0].ID
	var log struct {
		Messages []struct {
			Run string `json:"run_id"`
		}
	}
	if text := get(path+"/messages", &log); strings.Contains(text, secret) || !strings.Contains(text, "one ") || len(log.Messages) != 3 {
		t.Fatalf("the log is %s", text)
	}
	var decided struct {
		Entries []struct{ Plugin, Verdict string }
	}
	if text := get(path+"/decisions?run="+log.Messages[2].Run, &decided); !strings.Contains(text, `"redact"`) || !strings.Contains(text, `"applied"`) {
		t.Errorf("decided was %s", text)
	}
	get(path+"/compactions", &struct{}{})
}

// forwarding is how many requests the proxy has under way.
func (r *reloader) forwarding(ctx context.Context, t *testing.T) int {
	t.Helper()
	_, metrics := r.do(ctx, t, true, http.MethodGet, "/metrics", "", nil)
	return strings.Count(string(metrics), `mortise_proxy_events{what="active"} 1`)
}
