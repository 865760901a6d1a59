package e2e_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// world is the server processes, which may be killed and started again, and what they talk to.
type world struct {
	provider *providertest.Server
	dir      string
	store    string
	procs    []*proc
	// env are further variables of the server.
	env []string

	mu sync.Mutex
	// log is what all processes wrote to standard error.
	log strings.Builder

	shownMu sync.Mutex
	// shown is what the model was shown, in short.
	shown []string
}

// proc is one of the processes. What it is is guarded by the lock of its world.
type proc struct {
	config string
	api    string
	admin  string
	proxy  string
	cmd    *exec.Cmd
}

// options make a world: what a config has, the model, the URL of the store, a file if empty, and how many processes there are.
type options struct {
	config    string
	reply     func(providertest.Query) providertest.Answer
	store     string
	processes int
}

// newWorld is one process with a file.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, config, reply)
}

// newWorldOf is newWorld with another config and another model.
func newWorldOf(t *testing.T, config string, reply func(providertest.Query) providertest.Answer) *world {
	t.Helper()
	return newWorldWith(t, options{config, reply, "", 1})
}

// newWorldWith writes the configs and starts the provider.
func newWorldWith(t *testing.T, o options) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), store: o.store}
	var err error
	w.provider, err = providertest.New(providertest.Config{Reply: w.note(o.reply)})
	must(t, err)
	t.Cleanup(func() { _ = w.provider.Close() })
	if o.store == "" {
		w.store = w.path("mortise.db")
	}
	for i := range o.processes {
		p := &proc{config: w.path("mortise.yaml")}
		text := strings.ReplaceAll(o.config, "$TASKS", "")
		if o.processes > 1 {
			p.config = w.path(fmt.Sprintf("mortise-%d.yaml", i))
			text = strings.ReplaceAll(o.config, "$TASKS", fmt.Sprintf("tasks: {dir: tasks-%d}", i))
		}
		w.write(t, p.config, text)
		w.procs = append(w.procs, p)
	}
	must(t, os.WriteFile(w.path("key"), []byte(w.provider.Key()), 0o600))
	return w
}

// start starts all servers.
func (w *world) start(t *testing.T) {
	t.Helper()
	for _, p := range w.procs {
		w.launch(t, p)
	}
}

// configure writes the config of a world of one process.
func (w *world) configure(t *testing.T, config string) {
	t.Helper()
	w.write(t, w.procs[0].config, config)
}

func (w *world) write(t *testing.T, path, config string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	guests, err := filepath.Abs(filepath.Join("..", "..", "testdata", "guests"))
	must(t, err)
	text := strings.NewReplacer("$GUESTS", guests, "$URL", w.provider.URL(), "$SELF", self, "$LOG", w.toolLog(), "$MODEL", model).Replace(config)
	must(t, os.WriteFile(path+".new", []byte(text), 0o600))
	must(t, os.Rename(path+".new", path))
}

const config = `
version: 1
models:
  main: {provider: anthropic, name: $MODEL, base_url: "$URL", key: {file: key}, max_tokens: 4000}
agents:
  worker: {model: main, system_prompt: You do tasks., plugins: [guard, redact, index], background: [mcp__works__check]}
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
  summarizer: {module: $GUESTS/summarizers.wasm, policy: ledger, limits: {timeout: 60s}}
  admission: {module: $GUESTS/admission.wasm, policy: quota, limits: {timeout: 60s}, quota: {cooldown: 0s, timeout: 30s, max_attempts: 100}}
limits: {timeout: 60s}
serve: {workers: 8, lease: 2s, grace: 10s, max_attempts: 20} # a run that takes a second is killed more often than any deploy does
$TASKS
`

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }
func (w *world) toolLog() string         { return w.path("tool.log") }

// launch starts a server and waits until it is ready.
func (w *world) launch(t *testing.T, p *proc) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	args := []string{"serve", "--config", p.config, "--store", w.store, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	cmd := exec.Command(self) //nolint:gosec // this binary; the test kills it
	cmd.Env = append(os.Environ(), commandArgs+"="+strings.Join(args, "\n"))
	cmd.Env = append(cmd.Env, w.env...)
	cmd.Stderr = &logged{w}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	urls := map[string]string{}
	for lines := bufio.NewScanner(out); urls["admin"] == "" && lines.Scan(); {
		name, url, _ := strings.Cut(lines.Text(), " ")
		urls[name] = url
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p.api, p.admin, p.proxy, p.cmd = urls["api"], urls["admin"], urls["proxy"], cmd
	if len(urls) < 2 {
		_ = cmd.Wait()
		t.Errorf("the server does not start: %s", w.log.String())
	}
}

type logged struct{ w *world }

func (l *logged) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.log.Write(p)
}

// kill kills a server without a warning.
func (w *world) kill(p *proc) {
	w.mu.Lock()
	cmd := p.cmd
	w.mu.Unlock()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// stop ends the servers with SIGTERM.
func (w *world) stop(t *testing.T) {
	t.Helper()
	for _, p := range w.procs {
		must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, p := range w.procs {
		ended := make(chan error, 1)
		go func() { ended <- p.cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v: %s", err, w.said())
			}
		case <-time.After(time.Minute):
			_ = p.cmd.Process.Kill()
			t.Errorf("the server does not end: %s", w.said())
		}
	}
}

// said is the end of what the servers wrote.
func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.log.String()
	return text[max(0, len(text)-4000):]
}

// at is the address of any of the servers, which may be dead.
func (w *world) at(admin bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.procs[rand.IntN(len(w.procs))]
	if admin {
		return p.admin
	}
	return p.api
}

// checked reports whether a task is checked in the background.
func checked(task string) bool { return strings.HasSuffix(task, "0") || strings.HasSuffix(task, "5") }

// named finds the names of tasks.
var named = regexp.MustCompile(`task-\d+`)

// reply is the model: it calls the tool once for each task, has some checked in the background, and then answers that the task is done.
// What a user asks is a block of its own, besides a summary or a notification in the same message.
func reply(q providertest.Query) providertest.Answer {
	task, worked := "", false
	for i := range q.Messages {
		m := &q.Messages[i]
		for _, b := range m.Content {
			if rest, ok := strings.CutPrefix(b.Text, "Please do "); ok && m.Role == abi.RoleUser {
				task, _, _ = strings.Cut(rest, " ")
				worked = false
			}
		}
		worked = worked || m.Role == abi.RoleTool
	}
	if task == "" { // it was compacted, and the model continues for a notification of a background task
		for i := range q.Messages {
			if found := named.FindAllString(q.Messages[i].Text(), -1); found != nil {
				task, worked = found[len(found)-1], true
			}
		}
	}
	for i := range q.Messages { // a summary next to the request has the file that the work was on
		worked = worked || task != "" && strings.Contains(q.Messages[i].Text(), "/srv/app/"+task+".go")
	}
	if !worked {
		call := func(name string) abi.ToolCall {
			return abi.ToolCall{ID: fmt.Sprintf("call_%s_%d", name, q.N), Name: "mcp__works__" + name, Arguments: map[string]any{"task": task}}
		}
		calls := []abi.ToolCall{call("work")}
		if checked(task) {
			calls = append(calls, call("check"))
		}
		return providertest.Answer{Calls: calls}
	}
	text := "I have read /srv/app/" + task + ".go. " + strings.Repeat("It needed a change in many places. ", 50) + "done " + task
	return providertest.Answer{Content: []abi.ContentBlock{abi.Text(text)}, Pace: 3 * time.Millisecond}
}

// note keeps what the model was shown, in short, and passes the question on.
func (w *world) note(reply func(providertest.Query) providertest.Answer) func(providertest.Query) providertest.Answer {
	return func(q providertest.Query) providertest.Answer {
		text := fmt.Sprint(q.N)
		for i := range q.Messages {
			m := &q.Messages[i]
			text += fmt.Sprintf(" | %s, %d calls: %.300s", m.Role, len(m.ToolCalls), m.Text())
		}
		w.shownMu.Lock()
		w.shown = append(w.shown, text)
		w.shownMu.Unlock()
		return reply(q)
	}
}

// logShown logs what the model was shown of a task.
func (w *world) logShown(t *testing.T, task string) {
	t.Helper()
	w.shownMu.Lock()
	defer w.shownMu.Unlock()
	for _, text := range w.shown {
		if strings.Contains(text, task+" ") {
			t.Log(text)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
