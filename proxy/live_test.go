package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/agents"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

// liveRounds is how many tool calls a live session has.
func liveRounds() int {
	if n, err := strconv.Atoi(os.Getenv("MORTISE_LIVE_ROUNDS")); err == nil {
		return n
	}
	if testing.Short() {
		return 5
	}
	return 60
}

// liveModel answers an agent: a shell command in each round, and words at the end.
type liveModel struct {
	t         *testing.T
	rounds    int
	tool      func(n int) abi.ToolCall
	mu        sync.Mutex
	n         int
	compacted int // by the client
	bodies    [][]byte
}

func (m *liveModel) reply(q providertest.Query) providertest.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := ""
	if n := len(q.Messages); n > 0 {
		last = q.Messages[n-1].Text()
	}
	words := func(s string) providertest.Answer {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text(s)}}
	}
	switch {
	case strings.Contains(last, "detailed summary") || strings.Contains(last, "handoff summary") || strings.Contains(last, "CONTEXT CHECKPOINT") || strings.Contains(last, "structured context checkpoint"):
		m.compacted++
		return words("<summary>Files were listed.</summary>")
	case len(q.Tools) == 0:
		return words("{\"title\": \"x\"}")
	}
	m.bodies = append(m.bodies, bytes.Clone(q.Body))
	m.n++
	if m.n > m.rounds {
		return words("All done.")
	}
	return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("Round %d.", m.n))}, Calls: []abi.ToolCall{m.tool(m.n)}, Pace: livePace}
}

// livePace makes an answer take some seconds with a real model, and a part of one here.
const livePace = 150 * time.Millisecond

const bigOutput = "seq %d %d" // about 28 KB

func bigCommand(n int) string { return fmt.Sprintf(bigOutput, 100_000+n*5000, 100_000+n*5000+3900) }

// lenient takes out of requests what the strict fake does not have: fields and tools of newer APIs.
func lenient(t *testing.T, up string, bad *[]string, mu *sync.Mutex) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p, _ := wire.ProtocolOf(r.URL.Path)
		if p != "" {
			body = simplify(p, body)
		}
		out, _ := http.NewRequestWithContext(r.Context(), r.Method, up+r.URL.Path, bytes.NewReader(body))
		out.Header = r.Header.Clone()
		out.Header.Del("Accept-Encoding")
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		if resp.StatusCode >= 400 && r.Method == http.MethodPost {
			text, _ := io.ReadAll(resp.Body)
			mu.Lock()
			*bad = append(*bad, fmt.Sprintf("%s %d %s", r.URL.Path, resp.StatusCode, text))
			mu.Unlock()
			_, _ = w.Write(text)
			return
		}
		buf := make([]byte, 8192)
		for {
			n, err := resp.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// simplify keeps of a request what the fakes know.
func simplify(p wire.Protocol, body []byte) []byte {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&m) != nil {
		return body
	}
	list := func(v any) []any { l, _ := v.([]any); return l }
	object := func(v any) map[string]any { o, _ := v.(map[string]any); return o }
	switch p {
	case wire.Messages:
		delete(m, "context_management")
		delete(m, "diagnostics")
		delete(m, "speed")
		for _, v := range list(m["messages"]) {
			if o := object(v); o["role"] == "system" {
				o["role"] = "user"
			}
		}
		m["tools"] = slices.DeleteFunc(list(m["tools"]), func(v any) bool { o := object(v); delete(o, "defer_loading"); return o["input_schema"] == nil })
		if len(list(m["tools"])) == 0 {
			delete(m, "tools")
		}
	case wire.Chat:
	case wire.Responses:
		for _, name := range []string{"client_metadata", "prompt_cache_key", "service_tier", "text", "prompt_cache_options", "stream_options"} {
			delete(m, name)
		}
		m["tools"] = slices.DeleteFunc(list(m["tools"]), func(v any) bool { return object(v)["type"] != "function" })
		for _, v := range list(m["tools"]) {
			for k := range object(v) {
				if !slices.Contains([]string{"type", "name", "description", "parameters", "strict"}, k) {
					delete(object(v), k)
				}
			}
		}
		for _, v := range list(m["input"]) {
			for k, f := range object(v) {
				if f == nil || strings.HasPrefix(k, "internal_") || k == "metadata" {
					delete(object(v), k)
				}
			}
		}
	}
	return wire.Marshal(m)
}

// live drives an agent against the fake, through a proxy, and returns what it did.
func live(t *testing.T, m *liveModel, cfg *proxy.Config, run func(url, home string) *exec.Cmd) (*proxy.Report, []providertest.Bill, []string) {
	t.Helper()
	up := fake(t, m.reply)
	var mu sync.Mutex
	var bad []string
	front := lenient(t, up.URL(), &bad, &mu)
	url := front.URL
	var s *stand
	if cfg != nil {
		s = start(t, front.URL, *cfg)
		url = s.url
	}
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := run(url, home)
	go func() {
		<-ctx.Done()
		if cmd.Process != nil && ctx.Err() == context.DeadlineExceeded {
			_ = cmd.Process.Kill()
		}
	}()
	cmd.Dir = filepath.Join(home, "work")
	_ = os.MkdirAll(cmd.Dir, 0o700)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	err := cmd.Run()
	text := out.String()
	t.Logf("%s: %v, %d rounds, client compacted %d times; %.300s", time.Since(begin).Round(time.Second), err, m.n, m.compacted, text[max(0, len(text)-300):])
	if err != nil {
		t.Errorf("the agent failed: %v: %.3000s", err, text)
	}
	mu.Lock()
	defer mu.Unlock()
	var r *proxy.Report
	if s != nil {
		wait(t, "requests end", func() bool { return s.Report().Counts["active"] == 0 })
		r = s.Report()
	}
	return r, up.Bills(), bad
}

func claude(path string) func(url, home string) *exec.Cmd {
	return func(url, home string) *exec.Cmd {
		cmd := exec.Command(path, "-p", "List the numbers.", "--allowedTools", "Bash", "--output-format", "json", "--model", "claude-opus-4-8")
		cmd.Env = append(os.Environ(), "HOME="+home, "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY="+providertest.DefaultKey, "IS_SANDBOX=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000", "ENABLE_TOOL_SEARCH=true", "DISABLE_AUTOUPDATER=1")
		return cmd
	}
}

func bash(n int) abi.ToolCall {
	return abi.ToolCall{ID: fmt.Sprintf("toolu_%04d", n), Name: "Bash", Arguments: map[string]any{"command": bigCommand(n), "description": "list"}}
}

func codex(path string) func(url, home string) *exec.Cmd {
	return func(url, home string) *exec.Cmd {
		dir := filepath.Join(home, ".codex")
		_ = os.MkdirAll(dir, 0o700)
		config := "model = \"gpt-5\"\nmodel_provider = \"local\"\nmodel_context_window = 200000\n[model_providers.local]\nname = \"local\"\nbase_url = \"" + url + "/v1\"\nwire_api = \"responses\"\nenv_key = \"LOCAL_KEY\"\n"
		_ = os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600)
		cmd := exec.Command(path, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "List the numbers.")
		cmd.Env = append(os.Environ(), "HOME="+home, "CODEX_HOME="+dir, "LOCAL_KEY="+providertest.DefaultKey)
		return cmd
	}
}

func pi(path, api, model string) func(url, home string) *exec.Cmd {
	return func(url, home string) *exec.Cmd {
		dir := filepath.Join(home, ".pi", "agent")
		_ = os.MkdirAll(dir, 0o700)
		if api != "anthropic-messages" {
			url += "/v1"
		}
		config := map[string]any{"providers": map[string]any{"local": map[string]any{
			"baseUrl": url, "api": api, "apiKey": providertest.DefaultKey,
			"models": []any{map[string]any{"id": model, "contextWindow": 200_000, "maxTokens": 8000}},
		}}}
		_ = os.WriteFile(filepath.Join(dir, "models.json"), wire.Marshal(config), 0o600)
		cmd := exec.Command(path, "--offline", "--provider", "local", "--model", model, "-p", "List the numbers.")
		cmd.Env = append(os.Environ(), "HOME="+home, "PI_CODING_AGENT_DIR="+dir)
		return cmd
	}
}

// The real agents work through sixty rounds of large outputs: nothing is refused, and they do not compact by
// themselves, as Claude Code does without the proxy (acceptance 13 to 15, F26).
func TestLive(t *testing.T) {
	t.Parallel()
	rounds := liveRounds()
	name := func(tool string, args func(n int) map[string]any) func(int) abi.ToolCall {
		return func(n int) abi.ToolCall {
			return abi.ToolCall{ID: fmt.Sprintf("call_%04d", n), Name: tool, Arguments: args(n)}
		}
	}
	command := func(key string) func(int) map[string]any {
		return func(n int) map[string]any { return map[string]any{key: bigCommand(n)} }
	}
	codexArgs := func(n int) map[string]any { return map[string]any{"cmd": bigCommand(n), "max_output_tokens": 10_000} }
	for _, c := range []struct {
		name, agent string
		proto       wire.Protocol
		tool        func(int) abi.ToolCall
		run         func(path string) func(url, home string) *exec.Cmd
	}{
		{"claude", agents.Claude, wire.Messages, bash, claude},
		{"codex", agents.Codex, wire.Responses, name("exec_command", codexArgs), codex},
		{"pi-chat", agents.Pi, wire.Chat, name("bash", command("command")), func(p string) func(string, string) *exec.Cmd { return pi(p, "openai-completions", "gpt-5") }},
		{"pi-responses", agents.Pi, wire.Responses, name("bash", command("command")), func(p string) func(string, string) *exec.Cmd { return pi(p, "openai-responses", "gpt-5") }},
		{"pi-messages", agents.Pi, wire.Messages, name("bash", command("command")), func(p string) func(string, string) *exec.Cmd {
			return pi(p, "anthropic-messages", "claude-sonnet-4-5")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := agents.Path(t, c.agent)
			m := &liveModel{t: t, rounds: rounds, tool: c.tool}
			r, bills, bad := live(t, m, &proxy.Config{Compaction: policy(), Store: memstore.New(), Runtime: runtimeOf(t, watching{})}, c.run(path))
			for _, b := range bad {
				t.Errorf("refused: %.600s", b)
			}
			if m.n < rounds {
				t.Errorf("%d rounds of %d", m.n, rounds)
			}
			if r.Counts["refused"]+r.Counts["ungated"] > 0 { // of what an agent asks for by itself nothing is
				t.Errorf("requests are refused for plugins that fail closed: %v", r.Counts)
			}
			l := &upstreamLog{t: t, proto: c.proto}
			for _, b := range m.bodies {
				l.add(b)
			}
			sum, _ := cost(bills)
			without, compacting := r.Total.Savings()
			t.Logf("%d requests, %.3f USD, %d swaps, %d breaks, %d lanes, machine error %.4f, saved %.0f and %.0f of %.0f (%t), counts %v",
				len(bills), sum, r.Counts["swaps"], l.breaks, len(r.Lanes), r.Total.MachineError, without, compacting, r.Total.Without.Units, r.Total.SavedWithout != nil, r.Counts)
			if rounds >= 40 && r.Counts["swaps"] < 1 {
				t.Error("nothing was compacted")
			}
			if m.compacted > 0 || int64(l.breaks) > r.Counts["swaps"] {
				t.Errorf("the client compacted %d times, %d breaks", m.compacted, l.breaks)
			}
		})
	}
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		path := agents.Path(t, agents.Claude)
		m := &liveModel{t: t, rounds: rounds, tool: bash}
		_, bills, _ := live(t, m, nil, claude(path))
		sum, _ := cost(bills)
		t.Logf("%d requests, %.3f USD", len(bills), sum)
		if rounds >= 40 && m.compacted == 0 {
			t.Error("Claude Code does not compact by itself, so that the test proves nothing")
		}
	})
}
