package metrics_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/metrics"
)

// greeter is a model that bills its answers.
type greeter struct{}

func (greeter) Infer(context.Context, llm.Request) (*abi.Response, error) {
	return &abi.Response{
		Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("Hello.")}},
		Usage:   &abi.Usage{PromptTokens: 12, CompletionTokens: 3},
	}, nil
}

// The metrics of a runtime are an observer of it; the registry is served by promhttp.
func Example() {
	ctx, registry := context.Background(), prometheus.NewRegistry()
	m, err := metrics.New(metrics.Config{Registry: registry, Agents: []string{"greeter"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := mortise.New(ctx, mortise.Config{
		Agents:    map[string]mortise.Agent{"greeter": {Model: greeter{}, ModelName: "hello-1"}},
		Observers: []mortise.Observer{m.Observer()},
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
	input, _ := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Hello?")}})
	sub, err := r.Mailbox().SubmitBackground(ctx, mailbox.Request{Messages: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = r.Mailbox().Await(ctx, sub.Dispatch)
	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "mortise_prompt_tokens_total" {
			fmt.Println(f.GetMetric()[0].GetLabel()[0].GetValue(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output: greeter 12
}
