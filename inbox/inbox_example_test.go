package inbox_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store/memstore"
)

// A task ends while its thread has no run. The thread is woken, the next run reads the
// notification, and acknowledges it when the conversation is persisted.
func ExampleInbox() {
	ctx := context.Background()
	woken := make(chan string, 1)
	var tasks *background.Manager
	box, err := inbox.New(ctx, inbox.Config{
		Store: memstore.New(), // a SQLite file outlives the process
		Acknowledged: func(ctx context.Context, thread string, ids ...string) {
			tasks.Acknowledge(ctx, thread, ids...)
		},
	})
	if err != nil {
		panic(err)
	}
	tasks, err = background.New(background.Config{Ledger: box, NewID: func() string { return "bg_0" }})
	if err != nil {
		panic(err)
	}
	if err := tasks.Recover(ctx); err != nil { // what the process before left behind
		panic(err)
	}
	box.Start(func(_ context.Context, thread string) error { woken <- thread; return nil })
	_, err = tasks.Spawn(ctx, background.Spec{
		Thread: "thread-1", Type: "build",
		Body: func(context.Context, *background.Task) (any, error) { return "42 pages, 1 <broken> link", nil },
	})
	if err != nil {
		panic(err)
	}

	thread := <-woken
	delivery, err := box.Take(ctx, thread)
	if err != nil {
		panic(err)
	}
	defer delivery.Release() // what was not acknowledged is unread again
	var list []abi.Notice
	var keys []string
	for key, n := range delivery.All() {
		list, keys = append(list, n), append(keys, key)
	}
	prompt, used := inbox.Prepend(list, inbox.ResumePrompt, 0)
	fmt.Println(prompt) // the run answers, and the conversation is persisted
	if err := delivery.Done(ctx, keys[:used]...); err != nil {
		panic(err)
	}
	fmt.Println("not acknowledged:", box.Waiting(thread))

	_ = tasks.Close(ctx)
	_ = box.Close(ctx)
	// Output:
	// <system-reminder>
	// The following background tasks finished since your last turn:
	//
	// Task bg_0 (completed):
	// 42 pages, 1 &lt;broken&gt; link
	// </system-reminder>
	//
	// Continue based on the background task results above.
	// not acknowledged: 0
}

// scripted is a model that starts a task, and then repeats what it has received.
type scripted struct{ asked int }

func (s *scripted) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	s.asked++
	answer := abi.Message{Role: abi.RoleAssistant}
	switch last := r.Messages[len(r.Messages)-1].Text(); s.asked {
	case 1:
		answer.ToolCalls = []abi.ToolCall{{ID: "call-1", Name: "build", Arguments: map[string]any{}}}
	case 2:
		answer.Content = []abi.ContentBlock{abi.Text("The build has begun.")}
	default:
		answer.Content = []abi.ContentBlock{abi.Text("The model reads:\n" + last)}
	}
	return &abi.Response{Message: answer, StopReason: abi.StopEndTurn}, nil
}

// builder is a tool that starts a task and returns at once.
type builder struct {
	tasks *background.Manager
	done  <-chan struct{}
}

func (builder) Tools() []abi.Tool { return []abi.Tool{{Name: "build"}} }

func (b builder) CallTool(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
	// The context names the run and call the task comes from.
	id, err := b.tasks.Spawn(ctx, background.Spec{
		Thread: "thread-1", Type: "build",
		Body: func(context.Context, *background.Task) (any, error) {
			<-b.done
			return "42 pages", nil
		},
	})
	return abi.ToolResult{Message: "started " + id}, err
}

// An agent whose tasks report through an inbox. The run that started the task waits
// for it and ends; when the task ends, the inbox wakes the thread, and the notification is
// acknowledged when the answer is persisted. With a store and a Checkpointer that
// outlive the process, so does all of this.
func ExampleInbox_agent() {
	ctx := context.Background()
	var tasks *background.Manager
	box, err := inbox.New(ctx, inbox.Config{
		Store:        memstore.New(),
		Acknowledged: func(ctx context.Context, thread string, ids ...string) { tasks.Acknowledge(ctx, thread, ids...) },
	})
	if err != nil {
		panic(err)
	}
	tasks, err = background.New(background.Config{Ledger: box, NewID: func() string { return "bg_0" }})
	if err != nil {
		panic(err)
	}
	forModel, err := tasks.Tools(background.ToolsConfig{Thread: "thread-1"}) // list_tasks, task_result, wait_task, ...
	if err != nil {
		panic(err)
	}
	built := make(chan struct{})
	all, err := agent.JoinTools(builder{tasks, built}, forModel)
	if err != nil {
		panic(err)
	}
	fired, err := phases.New(phases.Config{Plugins: []phases.Plugin{tasks.Plugin()}}) // lists live tasks
	if err != nil {
		panic(err)
	}
	answers := make(chan string, 2)
	runs, err := agent.New(agent.Config{
		Profile: agent.Profile{Model: &scripted{}, Phases: fired, Tools: all}, Checkpoints: agent.NewMemory(),
		Notifications: agent.Notifications{
			Take:    func(ctx context.Context, thread string) (agent.Delivery, error) { return box.Take(ctx, thread) },
			Words:   func(list []abi.Notice) (string, int) { return inbox.FollowUp(list, 4096) },
			Pending: tasks.HasBlocking,
		},
		Execution: agent.Execution{ToolContext: background.ToolContext},
		Listen: func(_ context.Context, e agent.Event) {
			if e.Type == agent.EventRunFinish && e.Outcome.Status == agent.StatusDone {
				answers <- e.Outcome.Response
			}
		},
	})
	if err != nil {
		panic(err)
	}
	if err := tasks.Recover(ctx); err != nil { // what the process before left behind
		panic(err)
	}
	box.Start(runs.Wake) // now everything is there

	ask := abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Build it.")}}
	if _, err := runs.Run(ctx, agent.Request{ThreadID: "thread-1", Messages: []abi.Message{ask}}); err != nil {
		panic(err)
	}
	close(built) // after the run has ended
	fmt.Println(<-answers)
	task, _ := tasks.Get("bg_0")
	fmt.Println("started by call", task.Parent.CallID)

	_ = tasks.Close(ctx)
	_ = box.Close(ctx)
	fmt.Println("not acknowledged:", box.Waiting("thread-1"))
	// Output:
	// The model reads:
	// <system-reminder>
	// The following background tasks finished since your last turn:
	//
	// [task bg_0] completed: 42 pages
	// </system-reminder>
	// started by call call-1
	// not acknowledged: 0
}
