package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// largeTask begins the names of tasks whose check has a large output.
const largeTask = "large-"

// outputBytes is the size of a large output, and factAt where the one line is that is not repeated.
const (
	outputBytes = 200 << 10
	factAt      = 100 << 10
)

// largeOutput is an output with one fact in its middle.
func largeOutput(task string) string {
	fill := strings.Repeat("All is well here, nothing to see.\n", outputBytes/34)
	return fill[:factAt] + "\nThe fault of " + task + " is a missing bolt.\n" + fill[factAt:]
}

const outputs = `
version: 1
models:
  main: {provider: anthropic, name: $MODEL, base_url: "$URL", key: {file: key}, max_tokens: 4000}
agents:
  worker: {model: main, system_prompt: You check tasks., background: [mcp__works__check]}
mcp:
  - {name: works, command: ["$SELF"], env: {MORTISE_E2E_TOOL_LOG: "$LOG"}, required: true}
limits: {timeout: 60s}
serve: {grace: 10s, lease: 2s, retention: RETENTION}
$TASKS
`

// stored finds the handle of an output in a text.
var stored = regexp.MustCompile(`stored as ([a-z_]+-[A-Z2-7]{26})`)

// checker is a model that has the task checked in the background, reads the middle of the large output, and answers with the fact.
func checker(q providertest.Query) providertest.Answer {
	var task, handle, fact string
	started := false
	for i := range q.Messages {
		m := &q.Messages[i]
		text := m.Text()
		if rest, ok := strings.CutPrefix(text, "Please check "); ok && m.Role == abi.RoleUser {
			task = rest
		}
		started = started || m.Role == abi.RoleTool
		if found := stored.FindStringSubmatch(text); found != nil {
			handle = found[1]
		}
		if _, rest, ok := strings.Cut(text, "The fault of "+task+" is "); ok && task != "" {
			fact, _, _ = strings.Cut(rest, ".")
		}
	}
	call := func(name string, arguments map[string]any) providertest.Answer {
		return providertest.Answer{Calls: []abi.ToolCall{{ID: fmt.Sprintf("call_%s_%d", name, q.N), Name: name, Arguments: arguments}}}
	}
	say := func(text string) providertest.Answer {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text(text)}}
	}
	switch {
	case fact != "":
		return say("It is " + fact + ", see " + handle)
	case handle != "":
		return call("read_output", map[string]any{"handle": handle, "offset": factAt - 100, "limit": 1000})
	case started:
		return say("The check is under way.")
	default:
		return call("mcp__works__check", map[string]any{"task": task})
	}
}

// outputPage is what the API returns of an output.
type outputPage struct {
	Text  string
	Next  int64
	Total int64
}

// check has a task of a thread checked, and returns the handle of its output.
func (p *policies) check(thread, task string) (handle string) {
	p.t.Helper()
	path := "/v1/threads/" + thread + "/runs"
	if status, data, err := p.call(p.ctx, false, http.MethodPost, path, map[string]any{"input": "Please check " + task}); err != nil || status != http.StatusAccepted {
		p.t.Fatalf("submit: %d %s %v", status, data, err)
	}
	for p.ctx.Err() == nil {
		list, err := p.messages(p.ctx, "/v1/threads/"+thread)
		must(p.t, err)
		for i := range list {
			if text := list[i].Text(); list[i].Role == abi.RoleAssistant && strings.Contains(text, "It is a missing bolt") {
				_, handle, _ = strings.Cut(text, "see ")
				return handle
			}
		}
		pause(p.ctx, retry)
	}
	p.t.Fatalf("%s: the model does not come to the fact; %s", thread, p.w.said())
	return ""
}

// output reads a whole output over HTTP, and returns the status of the first page.
func (p *policies) output(thread, handle string) (status int, text string) {
	p.t.Helper()
	for offset := int64(0); ; {
		path := fmt.Sprintf("/v1/threads/%s/outputs/%s?offset=%d", thread, url.PathEscape(handle), offset)
		var page outputPage
		status, data, err := p.call(p.ctx, false, http.MethodGet, path, nil)
		must(p.t, err)
		if status != http.StatusOK {
			return status, text
		}
		must(p.t, json.Unmarshal(data, &page))
		text += page.Text
		if offset = page.Next; offset == 0 {
			if int64(len(text)) != page.Total {
				p.t.Errorf("%d bytes of %d: %s", len(text), page.Total, data[:min(len(data), 200)])
			}
			return status, text
		}
	}
}

// becomes polls until ok, or fails.
func (p *policies) becomes(what string, ok func() bool) {
	p.t.Helper()
	for !ok() {
		pause(p.ctx, retry)
		if p.ctx.Err() != nil {
			p.t.Fatalf("it never becomes true: %s; %s", what, p.w.said())
		}
	}
}

// TestServe_outputs: the large output of a background task reaches the model as a handle, with which it reads the rest; clients read it over
// HTTP, also when the process was killed; it is deleted with its thread, and else when it is too old or there are too many.
func TestServe_outputs(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	for _, c := range []struct {
		name  string
		store func(*testing.T) string
	}{
		{"SQLite", func(*testing.T) string { return "" }},
		{"PostgreSQL", postgres},
		{"NATS", jetstream},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			config := strings.Replace(outputs, "RETENTION", "{outputs: 24h}", 1)
			w := newWorldWith(t, options{config, checker, c.store(t), 1})
			w.start(t)
			p := &policies{&client{w: w, http: &http.Client{Transport: &http.Transport{}}}, t, ctx}
			t.Cleanup(p.http.CloseIdleConnections)

			a, b := p.check("a", "large-1"), p.check("b", "large-2")
			if status, text := p.output("a", a); status != http.StatusOK || text != largeOutput("large-1") {
				t.Errorf("the output is not the text of the tool: %d, %d bytes", status, len(text))
			}
			if status, _ := p.output("b", a); status != http.StatusNotFound {
				t.Errorf("the handle of another thread: %d", status)
			}
			if status, data, err := p.call(ctx, false, http.MethodDelete, "/v1/threads/a", nil); err != nil || status != http.StatusNoContent {
				t.Errorf("delete: %d %s %v", status, data, err)
			}
			if status, _ := p.output("a", a); status != http.StatusNotFound {
				t.Errorf("an output of a deleted thread: %d", status)
			}
			w.kill(w.procs[0])
			w.launch(t, w.procs[0])
			if status, text := p.output("b", b); status != http.StatusOK || text != largeOutput("large-2") {
				t.Errorf("after a kill: %d, %d bytes", status, len(text))
			}
			p.retained(config, b)
		})
	}
}

// retained starts the server with other bounds. The only output is that of the thread b.
func (p *policies) retained(config, handle string) {
	p.t.Helper()
	restart := func(retention string) {
		p.w.stop(p.t)
		p.w.configure(p.t, strings.Replace(strings.Replace(config, "{outputs: 24h}", retention, 1), "$TASKS", "", 1))
		p.w.start(p.t)
	}
	restart("{outputs: 24h, max_outputs: 1}")
	newer := p.check("c", "large-3")
	restart("{outputs: 24h, max_outputs: 1}") // it prunes when it starts
	p.becomes("of two outputs one is kept", func() bool { status, _ := p.output("b", handle); return status == http.StatusNotFound })
	if status, text := p.output("c", newer); status != http.StatusOK || text != largeOutput("large-3") {
		p.t.Errorf("the newest output: %d, %d bytes", status, len(text))
	}
	before := p.fileSize()
	restart("{outputs: 1s}")
	p.becomes("an old output is deleted", func() bool { status, _ := p.output("c", newer); return status == http.StatusNotFound })
	if before > 0 {
		p.becomes("the file shrinks", func() bool { return p.fileSize() <= before-outputBytes/2 })
	}
	p.w.stop(p.t)
}

// fileSize is that of the SQLite file, 0 for a server.
func (p *policies) fileSize() int64 {
	info, err := os.Stat(p.w.store)
	if err != nil {
		return 0
	}
	return info.Size()
}
