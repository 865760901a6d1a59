package mortise_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
)

// manners is a plugin in Go. It adds a message to what the model reads.
type manners struct{}

func (manners) Describe() abi.Description {
	hook := abi.Hook{Phase: abi.BeforeInference, Mode: abi.ModeTransform}
	return abi.Description{Name: "manners", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1}, Hooks: []abi.Hook{hook}}
}

func (manners) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	add := abi.ContextMessage{Key: "manners", Content: []abi.ContentBlock{abi.Text("Answer politely.")}}
	return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectAddContext, Context: &add}}}, nil
}

// reader is a model that repeats the first message that it reads.
type reader struct{}

func (reader) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	return &abi.Response{Message: abi.Message{Content: r.Messages[0].Content}}, nil
}

// A plugin in Go has the same interface as one in Wasm.
func Example_nativePlugin() {
	ctx := context.Background()
	r := expect(mortise.New(ctx, mortise.Config{
		Agents: map[string]mortise.Agent{"a": {Model: reader{}}}, Plugins: []phases.Plugin{manners{}},
	}))
	defer r.Close(ctx)
	_ = expect(r, r.Start(ctx))
	input := expect(agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Who are you?")}}))
	sub := expect(r.Mailbox().SubmitBackground(ctx, mailbox.Request{Thread: "t1", Messages: input}))
	fmt.Println(expect(r.Mailbox().Await(ctx, sub.Dispatch)).Response)
	// Output: Answer politely.
}
