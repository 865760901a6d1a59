package mortise_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/plugins"
)

// reckless is a model that deletes everything.
type reckless struct{}

func (reckless) Infer(context.Context, llm.Request) (*abi.Response, error) {
	call := abi.ToolCall{ID: "c1", Name: "bash", Arguments: map[string]any{"command": "rm -rf /"}}
	return &abi.Response{Message: abi.Message{ToolCalls: []abi.ToolCall{call}}}, nil
}

// command has the arguments of the tool.
type command struct {
	Command string `json:"command"`
}

// A plugin in Wasm takes part in the runs of every agent. This one forbids a command, which ends the run.
func Example_plugins() {
	ctx := context.Background()
	cache := filepath.Join(expect(os.UserCacheDir()), "mortise-test") // of compiled modules
	h := expect(host.New(host.Config{CacheDir: cache}))
	defer h.Close(ctx)
	set := expect(plugins.Load(ctx, h, []plugins.Entry{{Module: host.Spec{Path: "testdata/guests/guard.wasm"}}}))
	defer set.Close(ctx)
	bash := agent.Func("bash", "Runs a command.", func(context.Context, command) (string, error) { return "gone", nil })
	a := mortise.Agent{Model: reckless{}, Tools: expect(agent.Funcs(bash))}
	r := expect(mortise.New(ctx, mortise.Config{Agents: map[string]mortise.Agent{"a": a}, Plugins: set.Plugins()}))
	defer r.Close(ctx)
	_ = expect(r, r.Start(ctx))
	input := expect(agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Make room.")}}))
	sub := expect(r.Mailbox().SubmitBackground(ctx, mailbox.Request{Thread: "t1", Messages: input}))
	fmt.Println(expect(r.Mailbox().Await(ctx, sub.Dispatch)).Termination)
	// Output: blocked:guard: rule recursive_delete forbids: rm -rf /
}

// expect is for examples: a program handles its errors.
func expect[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
