package agentrun_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store/memstore"
)

// parrot is a model that repeats its input.
type parrot struct{}

func (parrot) Infer(_ context.Context, req llm.Request) (*abi.Response, error) {
	heard := req.Messages[len(req.Messages)-1]
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("You said: " + heard.Text())}}}, nil
}

// A request is queued, and an agent executes it.
func Example() {
	ctx := context.Background()
	plugins, err := phases.New(phases.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	runtime, err := agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
		return agent.Config{Profile: agent.Profile{Model: parrot{}, Phases: plugins}}, nil
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	box, err := mailbox.New(ctx, mailbox.Config{Store: memstore.New(), Runtime: runtime, Wake: agentrun.Wake})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	if err := box.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("hello")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	sub, err := box.SubmitBackground(ctx, mailbox.Request{Thread: "t1", Messages: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := box.Await(ctx, sub.Dispatch)
	fmt.Println(d.Status, d.Response, err)
	// Output: acked You said: hello <nil>
}

// A run that asks a person waits for as long as it may; the mailbox ends it then.
func ExampleConfig() {
	ctx := context.Background()
	plugins, err := phases.New(phases.Config{Plugins: []phases.Plugin{asks{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	runtime, err := agentrun.New(agentrun.Config{
		Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
			return agent.Config{Profile: agent.Profile{Model: &counter{rounds: 1}, Tools: &tools{}, Phases: plugins}}, nil
		},
		Patience: func(_ agent.Record, w agent.Waiting) time.Duration {
			if w.Reason == agent.WaitPermission {
				return 24 * time.Hour
			}
			return 0
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	box, err := mailbox.New(ctx, mailbox.Config{Store: memstore.New(), Runtime: runtime})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("count")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	sub, err := box.Submit(ctx, mailbox.Request{Thread: "t1", Messages: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = box.Await(ctx, sub.Dispatch); err != nil {
		fmt.Println(err)
		return
	}
	run, _, err := box.Run(ctx, sub.Run)
	fmt.Println(run.Status, run.Wait, run.WaitUntil.Sub(run.UpdatedAt).Round(time.Hour), err)
	// Output: waiting tool_permission 24h0m0s <nil>
}
