package mortise_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
)

// greeter is a model.
type greeter struct{}

func (greeter) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	text := "Hello, " + r.Messages[len(r.Messages)-1].Text()
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text)}}}, nil
}

func Example() {
	ctx := context.Background()
	r, err := mortise.New(ctx, mortise.Config{Agents: map[string]mortise.Agent{"greeter": {Model: greeter{}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close(ctx)
	if err := r.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	input, _ := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Ada")}})
	sub, err := r.Mailbox().SubmitBackground(ctx, mailbox.Request{Thread: "t1", Messages: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := r.Mailbox().Await(ctx, sub.Dispatch)
	fmt.Println(d.RunStatus, d.Response, err)
	// Output: done Hello, Ada <nil>
}

// clock is a tool that tells the time.
type clock struct{}

func (clock) Tools() []abi.Tool { return []abi.Tool{{Name: "clock"}} }

func (clock) CallTool(context.Context, abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{Message: "noon"}, nil
}

// lister is a model that lists its tools.
type lister struct{}

func (lister) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	text := fmt.Sprintf("%d tools", len(r.Tools))
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text)}}}, nil
}

// One thread has a tool that others have not.
func ExampleConfig_threadTools() {
	ctx := context.Background()
	r, err := mortise.New(ctx, mortise.Config{
		Agents: map[string]mortise.Agent{"lister": {Model: lister{}}},
		ThreadTools: func(thread string) agent.Tools {
			if thread == "t1" {
				return clock{}
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close(ctx)
	if err := r.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for _, thread := range []string{"t1", "t2"} {
		input, _ := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("What have you got?")}})
		sub, err := r.Mailbox().SubmitBackground(ctx, mailbox.Request{Thread: thread, Messages: input})
		if err != nil {
			fmt.Println(err)
			return
		}
		d, err := r.Mailbox().Await(ctx, sub.Dispatch)
		fmt.Println(thread, d.Response, err)
	}
	// Output:
	// t1 1 tools <nil>
	// t2 0 tools <nil>
}
