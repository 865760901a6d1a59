package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// story prints what happens.
type story struct {
	out  io.Writer
	root string
	s    *server
	// swapped is called when the policy is another one.
	swapped func()
}

// tell runs the story from the top of the repository.
func tell(ctx context.Context, out io.Writer, root string) (err error) {
	dir, err := os.MkdirTemp("", "mortise-example-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	model := &script{swapped: make(chan struct{})}
	swapped := sync.OnceFunc(func() { close(model.swapped) })
	if err := model.listen(ctx); err != nil {
		return err
	}
	defer func() {
		swapped()
		err = errors.Join(err, model.server.Close())
	}()
	t := &story{out: out, root: root, swapped: swapped}
	t.say("THE MODEL IS SCRIPTED: it answers from a script, on loopback (%s).", model.url)
	t.say("All else is real: mortise serve, plugins and policies in WebAssembly, an MCP server. Nothing leaves this machine.")
	t.say("\n1. Start the server (the first time its modules are compiled, which takes some seconds)\n")
	t.say("   $ mortise serve --config mortise.yaml      # without --store, threads are kept in memory")
	if t.s, err = start(ctx, dir, root, model.url); err != nil {
		return err
	}
	t.say("   API=%s ADMIN=%s", t.s.api, t.s.admin)
	err = t.chapters(ctx)
	t.say("\n5. Stop the server\n\n   $ kill -INT ...")
	if err = errors.Join(err, t.s.stop()); err == nil {
		t.say("   it has drained and ended with exit code 0; the scripted model has answered %d requests", model.answered())
	}
	return err
}

func (t *story) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

func (t *story) chapters(ctx context.Context) error {
	t.say("\n2. A run: an agent reads a document in parts, and outgrows 4,000 tokens on the way")
	if err := t.run(ctx, "Read "+documents()[0]+".", func(event) error { return nil }); err != nil {
		return err
	}
	t.say("\n3. The next run of the same thread. While it runs, an operator swaps the summarizer: what fails its trial is refused, a new build of it takes over")
	done := false
	swap := func(e event) error {
		if done || e.Type != "tool_result" {
			return nil
		}
		done = true
		defer t.swapped()
		return t.swap(ctx)
	}
	if err := t.run(ctx, "Now read "+documents()[1]+".", swap); err != nil {
		return err
	}
	t.say("\n4. The operator returns to the build before; the thread's next run has it again\n")
	if err := t.operate(ctx, http.MethodPost, "/v1/policies/summarizer/rollback", "", nil); err != nil {
		return err
	}
	return t.run(ctx, "Now read "+documents()[2]+".", func(event) error { return nil })
}

// swap uploads something that is no module, a summarizer that says the same of everything, and a new build of
// the one in use.
func (t *story) swap(ctx context.Context) error {
	for _, file := range []string{"README.md", "internal/cli/testdata/fixed.wasm", "testdata/guests/summarizers.wasm"} {
		body, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		name := filepath.Base(file)
		if name == "summarizers.wasm" {
			name, body = "build-2.wasm", append(body, 0, 8, 7, 'b', 'u', 'i', 'l', 'd', '-', '2') // a custom section
		}
		if err := t.operate(ctx, http.MethodPut, "/v1/policies/summarizer", name, body); err != nil {
			return err
		}
	}
	return nil
}

// operate sends a request to the operator's API, with the bytes of a file if it has a name.
func (t *story) operate(ctx context.Context, method, path, file string, body []byte) error {
	command := "curl -X " + method
	if file != "" {
		command += " -H 'Content-Type: application/wasm' --data-binary @" + file
	}
	status, answer, err := call(ctx, method, t.s.admin+path, "application/wasm", body)
	if err != nil {
		return err
	}
	var problem struct{ Detail, Hint string }
	if json.Unmarshal([]byte(answer), &problem) == nil && problem.Detail != "" {
		answer = problem.Detail + "; " + problem.Hint
	}
	t.say("   $ %s $ADMIN%s\n     %d %.600s", command, path, status, answer)
	return nil
}

// run submits a run and tells its events.
func (t *story) run(ctx context.Context, input string, also func(event) error) error {
	t.say("\n   $ curl -N -H 'Accept: text/event-stream' -H 'Content-Type: application/json' -d '{\"input\": %q}' $API/v1/threads/audit/runs", input)
	settled := false
	err := stream(ctx, t.s.api+"/v1/threads/audit/runs", input, func(e event) error {
		t.event(e)
		if e.Type == "settled" {
			settled = true
			if e.Termination != "natural" {
				return fmt.Errorf("the run ended: %s %s", e.Termination, e.Error)
			}
		}
		return also(e)
	})
	if err == nil && !settled {
		err = errors.New("the stream of the run ended before the run did")
	}
	return err
}

func (t *story) event(e event) {
	switch e.Type {
	case "tool_result":
		t.say("     tool_result           step %d: %s %v part %v: %s", e.Step, e.Call.Name, e.Call.Arguments["path"], e.Call.Arguments["part"], e.Result.Status)
	case "compaction_started":
		t.say("     compaction_started    the policy summarizes %d messages of %d tokens in the background; the run continues", e.Messages, e.PreTokens)
	case "compaction_swapped":
		t.say("     compaction_swapped    through the inbox after %s: %d -> %d tokens; %.0f %% of paths, errors and identifiers survive",
			time.Duration(e.DurationNS).Round(time.Millisecond), e.PreTokens, e.PostTokens, 100*e.Quality.Overall)
	case "compaction_failed", "compaction_refused":
		t.say("     %s    %s", e.Type, e.Reason)
	case "settled":
		t.say("     settled               %s: %s", e.Termination, e.Output)
	}
}
