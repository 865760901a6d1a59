package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	begun = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n"
	ended = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// killed is a proxy process on a store, and its upstream.
type killed struct {
	dir, listen, admin string
	cmd                *exec.Cmd
	bodies             chan string        // what the upstream got
	hold               chan chan struct{} // the next answer begins, or is held before it begins, until closed
	early              chan bool
}

// ServeHTTP is the upstream.
func (k *killed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	hold, early := <-k.hold, <-k.early
	w.Header().Set("Content-Type", "text/event-stream")
	if !early {
		_, _ = io.WriteString(w, begun)
		_ = http.NewResponseController(w).Flush()
	}
	k.bodies <- string(body)
	select {
	case <-hold:
	case <-r.Context().Done():
		return
	}
	if early {
		_, _ = io.WriteString(w, begun)
	}
	_, _ = io.WriteString(w, ended)
}

func (k *killed) start(t *testing.T) {
	t.Helper()
	k.cmd, k.listen, k.admin, _ = runProxy(t, filepath.Join(k.dir, "mortise.yaml"), filepath.Join(k.dir, "proxy.db"))
}

func (k *killed) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}

// send returns the answer, or the part of it that arrived.
func (k *killed) send(ctx context.Context, body string) string {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, k.listen+"/v1/messages", strings.NewReader(body))
	r.Header.Set("X-Api-Key", "key-of-the-client")
	r.Header.Set("X-Claude-Code-Session-Id", "5e5510")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

// A proxy that is killed inside of a request, before the answer begins or in the middle of its stream, continues the session when it
// is started again: the client's repeated request has the same bytes upstream, with the edits of plugins, and is in the same lane (acceptance 38).
func TestProxy_killed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("kills processes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k := &killed{dir: t.TempDir(), bodies: make(chan string, 1), hold: make(chan chan struct{}, 1), early: make(chan bool, 1)}
	up := httptest.NewServer(k)
	defer up.Close()
	config := "version: 1\ncache_dir: " + compiled(t) + "\nplugins:\n  - {name: redact, module: " + filepath.Join(root(t), "testdata", "guests", "redact.wasm") + "}\nproxy:\n  anthropic:\n    url: " + up.URL + "\n"
	if err := os.WriteFile(filepath.Join(k.dir, "mortise.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	close(open)
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	messages := `{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"it is ` + secret + `"}]}`
	request := func() string {
		return `{"model":"claude-sonnet-4-5","max_tokens":9,"stream":true,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[` + messages + `]}`
	}
	// exchange sends a request whose answer is whole.
	exchange := func() string {
		k.hold <- open
		k.early <- false
		if answer := k.send(ctx, request()); answer != begun+ended {
			t.Fatalf("the answer is %q", answer)
		}
		return <-k.bodies
	}
	k.start(t)
	defer func() { k.kill() }()
	first := exchange()
	for i, early := range []bool{false, true} {
		messages += fmt.Sprintf(`,{"role":"assistant","content":[{"type":"text","text":"ok"}]},{"role":"user","content":"and %d"}`, i)
		answer := make(chan string, 1)
		k.hold <- make(chan struct{})
		k.early <- early
		go func() { answer <- k.send(ctx, request()) }()
		before := <-k.bodies
		k.kill()
		if cut := <-answer; strings.Contains(cut, "message_stop") {
			t.Errorf("early %t: a killed proxy ended the answer: %q", early, cut)
		}
		k.start(t)
		if again := exchange(); again != before {
			t.Errorf("early %t: after the kill the upstream got\n%s\nand before it\n%s", early, again, before)
		}
		prefix := first[strings.Index(first, `"messages":`) : len(first)-2]
		if strings.Contains(before, secret) || !strings.Contains(before, prefix) {
			t.Errorf("early %t: the edits of the first request are not repeated: %s", early, before)
		}
	}
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, k.admin+"/v1/proxy", http.NoBody)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var report struct {
		Lanes []struct{ Epoch, Calls int }
	}
	if err := json.NewDecoder(resp.Body).Decode(&report); err != nil || len(report.Lanes) != 1 || report.Lanes[0].Epoch != 0 || report.Lanes[0].Calls < 3 {
		t.Errorf("%v: the session has the lanes %+v", err, report.Lanes)
	}
}
