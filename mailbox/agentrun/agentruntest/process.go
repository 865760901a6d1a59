package agentruntest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store"
)

// thread is that of the run, tokens what each inference is billed.
const (
	thread = "t"
	tokens = 120
)

// witness is a file that outlives processes. Each line is an inference, or an execution of a tool
// with the id and the key of its call.
type witness string

func (w witness) saw(words ...any) {
	f, err := os.OpenFile(string(w), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, words...)
	}
	if err != nil {
		panic(err)
	}
	_ = f.Close() // the line is written
}

func (w witness) lines() ([]string, error) {
	data, err := os.ReadFile(string(w))
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), err
}

// model makes three calls after a message of the user, and says done after their results.
type model struct{ witness }

// Infer implements llm.Model.
func (m model) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	m.saw("inference")
	answer := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("done")}}
	if r.Messages[len(r.Messages)-1].Role == abi.RoleUser {
		answer = abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "pay"}, {ID: "c2", Name: "pay"}, {ID: "c3", Name: "pay"}}}
	}
	return &abi.Response{Message: answer, Usage: &abi.Usage{PromptTokens: 100, CompletionTokens: 20, TotalTokens: tokens}}, nil
}

// tools has the tool of the three calls. Hang is called before and after its effect.
type tools struct {
	witness

	hang func(call, moment string)
}

func (tools) Tools() []abi.Tool { return []abi.Tool{{Name: "pay", Kind: abi.ToolExecute}} }

func (s tools) CallTool(_ context.Context, c abi.ToolCall) (abi.ToolResult, error) {
	s.hang(c.ID, "before")
	s.saw(c.ID, c.IdempotencyKey)
	s.hang(c.ID, "after")
	return abi.ToolResult{Message: "paid"}, nil
}

// start begins the mailbox of a process, and submits the request of the run, which is the same
// whichever process submits it.
func start(ctx context.Context, on store.Store, k kill, hang func(call, moment string)) (*mailbox.Mailbox, mailbox.Submission, error) {
	fired, err := phases.New(phases.Config{})
	if err != nil {
		return nil, mailbox.Submission{}, err
	}
	run, err := agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
		return agent.Config{Profile: agent.Profile{Model: model{k.Witness}, Tools: tools{k.Witness, hang}, Phases: fired}, Execution: agent.Execution{ToolMode: k.Mode}}, nil
	}})
	if err != nil {
		return nil, mailbox.Submission{}, err
	}
	box, err := mailbox.New(ctx, mailbox.Config{
		Store: on, Runtime: run, Wake: agentrun.Wake,
		Lease: mailbox.Lease{Duration: lease, Renew: lease / 5, Skew: 50 * time.Millisecond}, Poll: 20 * time.Millisecond,
		Retry:     mailbox.Retry{Delay: time.Millisecond, MaxDelay: 10 * time.Millisecond},
		Retention: mailbox.Retention{Interval: -1},
	})
	if err != nil {
		return nil, mailbox.Submission{}, err
	}
	if err := box.Start(ctx); err != nil {
		return nil, mailbox.Submission{}, err
	}
	inputs, err := agentrun.Inputs(abi.Message{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("pay three times")}})
	if err != nil {
		return box, mailbox.Submission{}, err
	}
	sub, err := box.SubmitBackground(ctx, mailbox.Request{Thread: thread, Key: "the only one", Messages: inputs})
	return box, sub, err
}
