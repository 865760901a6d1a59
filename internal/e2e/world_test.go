package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// model is the provider's name of the model.
const model = "claude-sonnet-4-5"

// world is a server process, which may be killed and started again, and what it talks to.
type world struct {
	provider *providertest.Server
	dir      string
	// env are further variables of the server.
	env []string

	mu    sync.Mutex
	api   string
	admin string
	cmd   *exec.Cmd
	// log is what all processes wrote to standard error.
	log strings.Builder
}

// newWorld writes a config and starts the provider.
func newWorld(t *testing.T) *world {
	t.Helper()
	provider, err := providertest.New(providertest.Config{Reply: reply})
	must(t, err)
	t.Cleanup(func() { _ = provider.Close() })
	self, err := os.Executable()
	must(t, err)
	w := &world{provider: provider, dir: t.TempDir()}
	guests, err := filepath.Abs(filepath.Join("..", "..", "testdata", "guests"))
	must(t, err)
	text := strings.NewReplacer("$GUESTS", guests, "$URL", provider.URL(), "$SELF", self, "$LOG", w.toolLog(), "$MODEL", model).Replace(config)
	must(t, os.WriteFile(w.path("mortise.yaml"), []byte(text), 0o600))
	must(t, os.WriteFile(w.path("key"), []byte(provider.Key()), 0o600))
	return w
}

const config = `
version: 1
models:
  main: {provider: anthropic, name: $MODEL, base_url: "$URL", key: {file: key}, max_tokens: 4000}
agents:
  worker: {model: main, system_prompt: You do tasks., plugins: [guard, redact, index]}
mcp:
  - {name: works, command: ["$SELF"], env: {MORTISE_E2E_TOOL_LOG: "$LOG"}, required: true}
plugins:
  - {name: guard, module: $GUESTS/guard.wasm}
  - {name: redact, module: $GUESTS/redact.wasm}
  - {name: index, module: $GUESTS/index.wasm}
compaction:
  window_tokens: 20000
  threshold_tokens: 2000
  keep_recent_tokens: 600
  summary_tokens: 1000
  summarizer: {module: $GUESTS/summarizers.wasm, policy: extract, limits: {timeout: 60s}}
  admission: {module: $GUESTS/admission.wasm, policy: quota, limits: {timeout: 60s}, quota: {cooldown: 0s, timeout: 30s, max_attempts: 100}}
limits: {timeout: 60s}
serve: {workers: 8, lease: 2s, grace: 10s, max_attempts: 100}
`

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }
func (w *world) toolLog() string         { return w.path("tool.log") }

// start starts the server and waits until it is ready.
func (w *world) start(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	args := []string{"serve", "--config", w.path("mortise.yaml"), "--store", w.path("mortise.db"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	cmd := exec.Command(self) //nolint:gosec // this binary; the test kills it
	cmd.Env = append(os.Environ(), commandArgs+"="+strings.Join(args, "\n"))
	cmd.Env = append(cmd.Env, w.env...)
	cmd.Stderr = &logged{w}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	urls := map[string]string{}
	for lines := bufio.NewScanner(out); len(urls) < 2 && lines.Scan(); {
		name, url, _ := strings.Cut(lines.Text(), " ")
		urls[name] = url
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.api, w.admin, w.cmd = urls["api"], urls["admin"], cmd
	if len(urls) < 2 {
		_ = cmd.Wait()
		t.Fatalf("the server does not start: %s", w.log.String())
	}
}

type logged struct{ w *world }

func (l *logged) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.log.Write(p)
}

// kill kills the server without a warning.
func (w *world) kill() {
	w.mu.Lock()
	cmd := w.cmd
	w.mu.Unlock()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// stop ends the server with SIGTERM and returns its error.
func (w *world) stop(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	cmd := w.cmd
	w.mu.Unlock()
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v: %s", err, w.said())
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Errorf("the server does not end: %s", w.said())
	}
}

// said is the end of what the servers wrote.
func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.log.String()
	return text[max(0, len(text)-4000):]
}

// at is the address of the server that runs now.
func (w *world) at(admin bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if admin {
		return w.admin
	}
	return w.api
}

// reply is the model: it calls the tool once for each task, and then answers that the task is done.
func reply(q providertest.Query) providertest.Answer {
	task, worked := "", false
	for i := range q.Messages {
		m := &q.Messages[i]
		for f := range strings.FieldsSeq(m.Text()) {
			if m.Role == abi.RoleUser && strings.HasPrefix(f, "task-") {
				task, worked = f, false
			}
		}
		worked = worked || m.Role == abi.RoleTool
	}
	if !worked {
		return providertest.Answer{Calls: []abi.ToolCall{{ID: "call_" + fmt.Sprint(q.N), Name: "mcp__works__work", Arguments: map[string]any{"task": task}}}}
	}
	text := "I have read /srv/app/" + task + ".go. " + strings.Repeat("It needed a change in many places. ", 50) + "done " + task
	return providertest.Answer{Content: []abi.ContentBlock{abi.Text(text)}, Pace: 3 * time.Millisecond}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
