package mortise_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
)

// says is a model that answers with its name and the system prompt, once hold is closed.
type says struct {
	name  string
	begun chan struct{}
	hold  chan struct{}
}

func (s *says) Infer(ctx context.Context, r llm.Request) (*abi.Response, error) {
	if s.hold != nil {
		close(s.begun)
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	text := s.name
	for i := range r.Messages {
		if strings.Contains(r.Messages[i].Text(), "Answer briefly.") {
			text += " briefly"
		}
	}
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text)}}}, nil
}

func submit(t *testing.T, r *mortise.Runtime, thread, text string) string {
	t.Helper()
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}})
	must(t, err)
	sub, err := r.Mailbox().SubmitBackground(t.Context(), mailbox.Request{Thread: thread, Messages: input})
	must(t, err)
	return sub.Dispatch
}

func answer(t *testing.T, r *mortise.Runtime, dispatch string) string {
	t.Helper()
	d, err := r.Mailbox().Await(t.Context(), dispatch)
	must(t, err)
	return d.Response
}

// TestRuntime_Reconfigure: a run under way ends with what it began with, and keeps that from being idle; the next
// one has the new model and plugins; a wrong config changes nothing.
func TestRuntime_Reconfigure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one, two := &says{name: "one", begun: make(chan struct{}), hold: make(chan struct{})}, &says{name: "two"}
		r, err := mortise.New(t.Context(), mortise.Config{
			Agents: map[string]mortise.Agent{"a": {Model: one}}, Plugins: []phases.Plugin{pins{}},
			Compaction: &compaction.Config{Summarizer: late{}},
		})
		must(t, err)
		must(t, r.Start(t.Context()))
		first := submit(t, r, "t1", "hello")
		<-one.begun

		compact := &compaction.Config{Summarizer: late{}, Policy: compaction.Policy{ThresholdTokens: 50_000}}
		for name, bad := range map[string]mortise.Config{
			"no agent":       {Compaction: compact},
			"no plugin":      {Agents: map[string]mortise.Agent{"a": {Model: two, Plugins: []string{"nobody"}}}, Compaction: compact},
			"no compaction":  {Agents: map[string]mortise.Agent{"a": {Model: two}}},
			"bad compaction": {Agents: map[string]mortise.Agent{"a": {Model: two}}, Compaction: &compaction.Config{Summarizer: late{}, Policy: compaction.Policy{ThresholdTokens: -1}}},
		} {
			if _, err := r.Reconfigure(bad); err == nil {
				t.Errorf("%s is taken", name)
			}
		}
		idle, err := r.Reconfigure(mortise.Config{Agents: map[string]mortise.Agent{"a": {Model: two}}, Compaction: compact})
		must(t, err)
		if got := answer(t, r, submit(t, r, "t2", "hello")); !strings.Contains(got, "two") || strings.Contains(got, "briefly") {
			t.Errorf("the next run says %s", got)
		}
		again, err := r.Reconfigure(mortise.Config{Agents: map[string]mortise.Agent{"a": {Model: two}}, Compaction: compact})
		must(t, err)
		<-again // nothing uses it
		select {
		case <-idle:
			t.Error("idle while a run uses it")
		default:
		}
		close(one.hold)
		if got := answer(t, r, first); !strings.Contains(got, "one briefly") {
			t.Errorf("the run under way says %s", got)
		}
		<-idle
		must(t, r.Close(t.Context()))
	})
}

func ExampleRuntime_Reconfigure() {
	ctx := context.Background()
	answers := func(text string) map[string]mortise.Agent {
		return map[string]mortise.Agent{"a": {Model: &says{name: text}}}
	}
	r, err := mortise.New(ctx, mortise.Config{Agents: answers("hello")})
	if err == nil {
		err = r.Start(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	idle, err := r.Reconfigure(mortise.Config{Agents: answers("good morning")})
	if err != nil {
		fmt.Println(err)
	}
	<-idle // what the agents before used can be closed now
	input, _ := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("hi")}})
	sub, _ := r.Mailbox().SubmitBackground(ctx, mailbox.Request{Thread: "t", Messages: input})
	d, err := r.Mailbox().Await(ctx, sub.Dispatch)
	fmt.Println(d.Response, err)
	fmt.Println(r.Close(ctx))
	// Output:
	// good morning <nil>
	// <nil>
}
