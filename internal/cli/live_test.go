package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	runtime "github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/llm/anthropic"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// provider is a fake of the vendors, which keeps what it was asked.
type provider struct {
	*providertest.Server

	mu    sync.Mutex
	asked []providertest.Query
}

func newProvider(t *testing.T, reply func(providertest.Query) providertest.Answer) *provider {
	t.Helper()
	p := &provider{}
	var err error
	p.Server, err = providertest.New(providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
		p.mu.Lock()
		p.asked = append(p.asked, q)
		p.mu.Unlock()
		return reply(q)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// queries are the requests so far.
func (p *provider) queries() []providertest.Query {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// said answers with a text.
func said(format string, args ...any) providertest.Answer {
	return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprintf(format, args...))}}
}

// calls answers with a call of a tool.
func calls(name string, arguments map[string]any) providertest.Answer {
	return providertest.Answer{Calls: []abi.ToolCall{{ID: "call_1", Name: name, Arguments: arguments}}}
}

// last is the last message of a request.
func last(q providertest.Query) *abi.Message { return &q.Messages[len(q.Messages)-1] }

// liveConfig writes a config whose agent asks the provider. The plugin has tools, of which pay asks to be approved.
func (p *provider) config(t *testing.T, more string) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(p.Key()), 0o600); err != nil {
		t.Fatal(err)
	}
	return config(t, fmt.Sprintf(`
models:
  main: {provider: anthropic, name: claude-sonnet-4-5, base_url: %q, key: {file: %q}, retry: {max: 1}}
agents:
  clerk: {model: main, system_prompt: You are a clerk.}
plugins:
  - {name: teller, module: $ROOT/testdata/guests/teller.wasm, limits: {timeout: 30s, init_timeout: 30s}}
%s`, p.URL(), key, more))
}

// pays calls the tool pay once, and then repeats what it returned.
func pays(q providertest.Query) providertest.Answer {
	if m := last(q); m.Role == abi.RoleTool {
		return said("The teller said: %s", m.Text())
	}
	return calls("pay", map[string]any{"to": "Ada", "note": "<fee> & \x1b[2J\u202ereversed"})
}

// TestRun_prompt: the answer, and nothing else, is on standard output; calls and costs are on standard error.
func TestRun_prompt(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(q providertest.Query) providertest.Answer {
		if m := last(q); m.Role == abi.RoleTool {
			return said("The sum is %s.\n\x1b[1mraw\r\n", m.Text())
		}
		return calls("sum", map[string]any{"values": []any{40, 2}})
	})
	code, stdout, stderr := mortise(t.Context(), "", "run", "-c", p.config(t, ""), "What is 40 + 2?")
	if code != exit.OK || stdout != "The sum is {\"total\":42}.\n\x1b[1mraw\r\n" {
		t.Errorf("exit code %d, %q: %s", code, stdout, stderr)
	}
	for _, want := range []string{`tool sum {"values":[40,2]}`, `success: {"total":42}`, "2 steps, ", " USD"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("standard error has no %q: %s", want, stderr)
		}
	}
	if q := p.queries()[0]; q.System != "You are a clerk." || last(q).Text() != "What is 40 + 2?" {
		t.Errorf("the model was asked %q %q", q.System, last(q).Text())
	}
	for _, b := range p.Bills() {
		if b.Failed {
			t.Errorf("a request was refused: %+v", b)
		}
	}
}

// TestRun_standardInput: text is a prompt, JSON is a recording unless a flag is for prompts.
func TestRun_standardInput(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(q providertest.Query) providertest.Answer { return said("You said %s", last(q).Text()) })
	cfg := p.config(t, "")
	recording := `{"messages": [{"role": "user", "content": "hello"}]}`
	for _, tc := range []struct{ stdin, flag, want string }{
		{"two\nlines", "--quiet", "You said two\nlines"},
		{recording, "--approve=never", "You said " + recording},
		{recording, "--output=json", `"conversations": 1`},
		{recording, "--quiet", "1 message"},
	} {
		code, stdout, stderr := mortise(t.Context(), tc.stdin, "run", "-c", cfg, tc.flag, "-")
		if code != exit.OK || !strings.Contains(stdout, tc.want) {
			t.Errorf("%s %q: exit code %d, %s: %s", tc.flag, tc.stdin, code, stdout, stderr)
		}
	}
}

// TestRun_ambiguous: what is a file, or looks like one, is no prompt.
func TestRun_ambiguous(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(providertest.Query) providertest.Answer { return said("hello") })
	cfg := p.config(t, "")
	for _, tc := range []struct {
		args []string
		code exit.Code
		want string
	}{
		{[]string{"foo.jsonl"}, exit.Usage, "session foo.jsonl: transcript: open foo.jsonl: no such file or directory; check the path; a prompt that looks like one"},
		{[]string{"sessions/foo"}, exit.Usage, "no such file"},
		{[]string{"--pace", "1s", "foo"}, exit.Usage, "session foo: transcript: open foo: no such file"},
		{[]string{"testdata"}, exit.Session, "name a file in this folder"},
		{[]string{"--json", "testdata"}, exit.Usage, "an argument that is a file or folder is a recording"},
		{[]string{"  "}, exit.Usage, "the prompt is empty"},
		{[]string{"-"}, exit.Usage, "standard input: is empty"},
		{[]string{"hello."}, exit.OK, "1 step"},
		{[]string{"explain foo.jsonl"}, exit.OK, "1 step"},
		{[]string{"--approve", "ask", "hi"}, exit.Usage, "are no terminal"},
		{[]string{"--approve", "maybe", "hi"}, exit.Usage, "must be ask, always or never"},
		{[]string{"--thread", "t", "hi"}, exit.Usage, "--thread: there is no store"},
		{[]string{"--agent", "boss", "hi"}, exit.Usage, `there is no agent "boss"; it is one of ["clerk"]`},
		{[]string{"--model", "claude-nothing", "hi"}, exit.Run, "claude-nothing"},
		{[]string{"--model", "claude-opus-4-8", "hi"}, exit.OK, "1 step"},
	} {
		code, _, stderr := mortise(t.Context(), "", append([]string{"run", "-c", cfg}, tc.args...)...)
		if code != tc.code || !strings.Contains(stderr, tc.want) {
			t.Errorf("%q: exit code %d: %s", tc.args, code, stderr)
		}
	}
	if q := p.queries(); q[len(q)-1].Model != "claude-opus-4-8" {
		t.Errorf("--model asked %s", q[len(q)-1].Model)
	}
}

// TestRun_approve: without a terminal, calls that need an approval are denied with a hint, or as --approve says.
func TestRun_approve(t *testing.T) {
	t.Parallel()
	p := newProvider(t, pays)
	cfg := p.config(t, "")
	for flag, want := range map[string][2]string{
		"":                 {"The teller said: Denied: no one can approve this call", "standard input is no terminal; --approve always"},
		"--approve=never":  {"The teller said: Denied: no one can approve this call", "denied: pay"},
		"--approve=always": {"The teller said: paid <nil> with key true", "pay waits for a decision"},
	} {
		args := []string{"run", "-c", cfg, "Pay Ada."}
		if flag != "" {
			args = append(args, flag)
		}
		code, stdout, stderr := mortise(t.Context(), "", args...)
		if code != exit.OK || stdout != want[0]+"\n" || !strings.Contains(stderr, want[1]) {
			t.Errorf("%s: exit code %d, %q: %s", flag, code, stdout, stderr)
		}
		if strings.Contains(stderr, "success: Denied") || strings.Contains(stderr, "not executed: no one can approve") != (flag != "--approve=always") {
			t.Errorf("%s: %q", flag, stderr)
		}
		if hinted := strings.Contains(stderr, "no terminal"); hinted != (flag == "") || strings.Contains(stderr, "\x1b") {
			t.Errorf("%s: %q", flag, stderr)
		}
	}
}

// TestRun_thread: a thread of a store continues in the next process, which reads the messages of the one before, and the compaction
// for which that one stayed.
func TestRun_thread(t *testing.T) {
	t.Parallel()
	stays := make(chan struct{})
	p := newProvider(t, func(q providertest.Query) providertest.Answer {
		if q.System != "You are a clerk." { // the summarizer asks
			select {
			case <-stays:
			case <-t.Context().Done():
			}
			return said("nothing that has the sections of a summary, so that the fallback writes it")
		}
		return said("You said %q. I have read /srv/app/main.go. %s", last(q).Text(), strings.Repeat("It needed a change in many places. ", 170))
	})
	cfg := p.config(t, `
compaction:
  window_tokens: 20000
  threshold_tokens: 3000
  keep_recent_tokens: 400
  summary_tokens: 600
  summarizer: {policy: anchored, limits: {timeout: 60s, init_timeout: 60s}, grants: {model: {summarizer: main}}}
  admission: {policy: cost, limits: {timeout: 60s, init_timeout: 60s}, quota: {cooldown: 0s, timeout: 60s}}
`)
	store := filepath.Join(t.TempDir(), "mortise.db")
	stderr := &trigger{on: "a compaction of this thread is under way", do: sync.OnceFunc(func() { close(stays) })}
	for i := range 6 {
		args := []string{"run", "-c", cfg, "--store", store, "--thread", "t1", fmt.Sprintf("message %d", i)}
		code := cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: stderr}, links.All())
		if code != exit.OK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		if strings.Contains(stderr.String(), "swapped in") {
			break
		}
	}
	q := p.queries()
	if n := len(q[1].Messages); n != 3 || q[1].Messages[0].Text() != "message 0" {
		t.Errorf("the second run was sent %d messages", n)
	}
	var all strings.Builder
	for _, m := range q[len(q)-1].Messages {
		all.WriteString(m.Text())
	}
	if text := all.String(); !strings.Contains(stderr.String(), "swapped in") || !strings.Contains(text, "<conversation-summary>") {
		t.Errorf("the last run was sent\n%.300s\nstandard error: %s", text, stderr)
	}
	v := show(t, store).Threads[0]
	n := len(v.State.Markers)
	if v.ID != "t1" || v.Messages < 6 || n == 0 || v.Evidence.AdmittedCount == 0 {
		t.Fatalf("shown is %+v", v)
	}
	if list := must(t, "explain", "--store", store); strings.Count(list, "t1") < 2 {
		t.Errorf("listed %s", list)
	}
	if out := must(t, "compact", "undo", store, "--thread", "t1"); !strings.Contains(out, leftAfter(n-1)) {
		t.Errorf("undo says %s", out)
	}
}

// TestRun_continuesAReplay: a thread that a replay wrote is a thread like any other.
func TestRun_continuesAReplay(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(providertest.Query) providertest.Answer { return said("Fine.") })
	store := filepath.Join(t.TempDir(), "mortise.db")
	code, r, stderr := run(t, config(t, ""), write(t, "chat.jsonl", []byte(chat)), "--store", store)
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	before := show(t, store).Threads[0]
	for i := range 2 {
		if code, _, stderr := mortise(t.Context(), "", "run", "-c", p.config(t, ""), "--store", store, "--thread", r.Threads[0].ID, "And now?"); code != exit.OK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		if q := p.queries()[i]; len(q.Messages) != before.Messages+2*i+1 {
			t.Errorf("the model was sent %d messages, and the recording has %d", len(q.Messages), before.Messages)
		}
		if after := show(t, store).Threads[0]; after.ID != before.ID || after.Messages != before.Messages+2*i+2 {
			t.Errorf("the thread has %d messages, after %d", after.Messages, before.Messages)
		}
	}
}

// TestRun_json: standard output has the events of the run as the HTTP API has them, a line each.
func TestRun_json(t *testing.T) {
	t.Parallel()
	p := newProvider(t, pays)
	code, stdout, stderr := mortise(t.Context(), "", "run", "-c", p.config(t, ""), "--json", "--approve", "always", "Pay Ada.")
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var types []string
	text, output := "", ""
	for line := range strings.Lines(stdout) {
		var e struct {
			Type, ID, Delta, Output string
			Run                     string `json:"run_id"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Type == "" || e.ID == "" || e.Run == "" {
			t.Fatalf("%v: %s", err, line)
		}
		types, text, output = append(types, e.Type), text+e.Delta, e.Output
	}
	for _, want := range []string{"run_started", "tool_call_ready", "tool_waiting", "run_waiting", "tool_call_resumed", "run_ended"} {
		if !strings.Contains(strings.Join(types, " "), want) {
			t.Errorf("no %s in %q", want, types)
		}
	}
	if types[0] != "run_started" || types[len(types)-1] != "settled" || !strings.HasPrefix(output, "The teller said: paid") || !strings.HasSuffix(text, output) {
		t.Errorf("%q, output %q", types, output)
	}
}

// TestRun_fails: a run that fails, or is stopped, does so once and with an exit code.
func TestRun_fails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reply func(providertest.Query) providertest.Answer
		want  string
		asked int
	}{
		"refused": {func(providertest.Query) providertest.Answer {
			return providertest.Answer{Fault: &providertest.Fault{Status: 400, Type: "invalid_request_error", Message: "no \x1b[31mred\x1b[0m"}}
		}, `the run failed: `, 1},
		"overloaded": {func(providertest.Query) providertest.Answer {
			return providertest.Answer{Fault: &providertest.Fault{Status: 529, RetryAfter: time.Millisecond}}
		}, "the run failed: ", 2},
		"stopped": {func(providertest.Query) providertest.Answer {
			return calls("sum", map[string]any{"values": []any{1}})
		}, "the run was stopped before its end: ", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, tc.reply)
			cfg := p.config(t, "")
			data, err := os.ReadFile(cfg)
			if err == nil {
				err = os.WriteFile(cfg, bytes.Replace(data, []byte("You are a clerk."), []byte("You are a clerk., max_rounds: 3"), 1), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			code, _, stderr := mortise(t.Context(), "", "run", "-c", cfg, "Pay Ada.")
			if code != exit.Run || !strings.Contains(stderr, tc.want) || strings.Contains(stderr, "\x1b") || len(p.queries()) != tc.asked {
				t.Errorf("exit code %d after %d requests: %q", code, len(p.queries()), stderr)
			}
		})
	}
}

// TestRun_interrupted: an interrupt ends a run whose model does not answer.
func TestRun_interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := newProvider(t, func(providertest.Query) providertest.Answer {
		a := said("%s", strings.Repeat("word ", 100))
		a.Fault = &providertest.Fault{CutAfter: 3, Hang: true}
		return a
	})
	out := &trigger{on: "word", do: cancel}
	var stderr bytes.Buffer
	code := cli.Main(ctx, []string{"run", "-c", p.config(t, ""), "Speak."}, cli.Streams{In: strings.NewReader(""), Out: out, Err: &stderr}, links.All())
	if code != exit.Interrupted || !strings.Contains(stderr.String(), "mortise: interrupted") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRun_leavesOthers: what a store has queued for a server stays queued.
func TestRun_leavesOthers(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(providertest.Query) providertest.Answer { return said("hello") })
	model, err := anthropic.New(anthropic.Config{BaseURL: p.URL(), Key: p.Key()})
	noError(t, err)
	path := filepath.Join(t.TempDir(), "mortise.db")
	// server opens what a server has, which is not started.
	server := func(use func(*mailbox.Mailbox)) {
		store, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
		noError(t, err)
		r, err := runtime.New(t.Context(), runtime.Config{Agents: map[string]runtime.Agent{"clerk": {Model: model}}, Store: store})
		noError(t, err)
		use(r.Mailbox())
		noError(t, errors.Join(r.Close(t.Context()), store.Close(t.Context())))
	}
	var queued mailbox.Submission
	server(func(m *mailbox.Mailbox) {
		input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("later")}})
		noError(t, err)
		queued, err = m.SubmitBackground(t.Context(), mailbox.Request{Thread: "other", Messages: input})
		noError(t, err)
	})
	if code, _, stderr := mortise(t.Context(), "", "run", "-c", p.config(t, ""), "--store", path, "hi"); code != exit.OK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	server(func(m *mailbox.Mailbox) {
		d, _, err := m.Dispatch(t.Context(), queued.Dispatch)
		if err != nil || d.Status != mailbox.Queued || len(p.queries()) != 1 {
			t.Errorf("%s %v after %d requests", d.Status, err, len(p.queries()))
		}
	})
}
