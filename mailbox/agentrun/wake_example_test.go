package agentrun_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store/memstore"
)

// builds is a model that has something built, and repeats what it reads after that.
type builds struct{}

func (builds) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	answer := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("I wait.")}}
	switch last := len(r.Messages) - 1; {
	case last == 0:
		answer.ToolCalls = []abi.ToolCall{{ID: "call-1", Name: "build"}}
	case r.Messages[last].Text() == agentrun.WakeText:
		answer.Content = []abi.ContentBlock{abi.Text("I read:\n" + r.Messages[last-1].Text())}
	}
	return &abi.Response{Message: answer}, nil
}

// builder is its tool: it starts a task, which ends when done is closed.
type builder struct {
	tasks *background.Manager
	done  <-chan struct{}
}

func (builder) Tools() []abi.Tool { return []abi.Tool{{Name: "build"}} }

func (b builder) CallTool(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
	id, err := b.tasks.Spawn(ctx, background.Spec{Thread: "t1", Type: "build", Body: func(context.Context, *background.Task) (any, error) {
		<-b.done
		return "42 pages", nil
	}})
	return abi.ToolResult{Message: "started " + id}, err
}

// Runs of a mailbox whose tasks report through an inbox. The run that started the task waits for it
// without a worker; when the task ends, the inbox wakes the thread, and the run continues.
func ExampleWaker() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	var tasks *background.Manager
	out, err := inbox.New(ctx, inbox.Config{
		Store:        memstore.New(),
		Acknowledged: func(ctx context.Context, thread string, ids ...string) { tasks.Acknowledge(ctx, thread, ids...) },
	})
	check(err)
	tasks, err = background.New(background.Config{Ledger: out, NewID: func() string { return "bg_0" }})
	check(err)
	hooks, err := phases.New(phases.Config{Plugins: []phases.Plugin{tasks.Plugin()}})
	check(err)
	built, answers := make(chan struct{}), make(chan string, 1)
	run, err := agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
		return agent.Config{
			Profile: agent.Profile{Model: builds{}, Phases: hooks, Tools: builder{tasks, built}}, Notifications: agent.Notifications{
				Pending: tasks.HasBlocking,
				Take:    func(ctx context.Context, thread string) (agent.Delivery, error) { return out.Take(ctx, thread) },
				Words:   func(list []abi.Notice) (string, int) { return inbox.FollowUp(list, 4096) },
			}, Execution: agent.Execution{ToolContext: background.ToolContext},
			Listen: func(_ context.Context, e agent.Event) {
				if e.Type == agent.EventRunFinish && e.Outcome.Status == agent.StatusDone {
					answers <- e.Outcome.Response
				}
			},
		}, nil
	}})
	check(err)
	box, err := mailbox.New(ctx, mailbox.Config{Store: memstore.New(), Runtime: run, Wake: agentrun.Wake})
	check(err)
	check(tasks.Recover(ctx)) // what the process before left behind
	check(box.Start(ctx))
	out.Start(agentrun.Waker(box))

	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Build it.")}})
	check(err)
	sub, err := box.SubmitBackground(ctx, mailbox.Request{Thread: "t1", Messages: input})
	check(err)
	d, err := box.Await(ctx, sub.Dispatch)
	check(err)
	fmt.Println(d.RunStatus)
	close(built) // while no run is under way
	fmt.Println(<-answers)

	check(box.Close(ctx))
	check(tasks.Close(ctx))
	check(out.Close(ctx))
	// Output:
	// waiting
	// I read:
	// <system-reminder>
	// The following background tasks finished since your last turn:
	//
	// [task bg_0] completed: 42 pages
	// </system-reminder>
}
