package mortise

import (
	"context"
	"errors"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/phases"
)

// Observer receives what runs do. Package metrics makes one that counts it, package spans one that traces it. Its functions are
// called from all runs concurrently, and what calls them waits. Those that are nil are not called.
//
// Run, Inference and Tool are called when something begins. It gets the returned context, which that of what happens
// inside of it derives from. End is called when it is over; it may be nil.
type Observer struct {
	// Run is one execution of a run by the agent of that name: a run that waits and continues has several.
	Run func(ctx context.Context, agent string, j *mailbox.Job) (_ context.Context, end func(mailbox.Result, error))
	// Inference is a request to a model.
	Inference llm.Observe
	// Tool is a tool call that is executed: its gates have allowed it.
	Tool func(ctx context.Context, agent string, call abi.ToolCall) (_ context.Context, end func(abi.ToolResult, error))
	// Event receives the events of a run.
	Event func(context.Context, agent.Event)
	// Hook receives what each call of a plugin's hook came to.
	Hook func(phases.Record)
	// Compaction receives what happens to the compactions of threads. The context is that of the thread's run, if it has one.
	Compaction func(context.Context, compaction.Event)
	// Task receives the start and the end of background tasks.
	Task func(background.Event)
}

// observers are those of the config, and the log.
type observers []Observer

// began calls the ends in reverse order, as deferred calls are.
func began[A, B any](ends []func(A, B)) func(A, B) {
	return func(a A, b B) {
		for _, end := range slices.Backward(ends) {
			if end != nil {
				end(a, b)
			}
		}
	}
}

func (o observers) run(ctx context.Context, name string, j *mailbox.Job) (context.Context, func(mailbox.Result, error)) {
	var ends []func(mailbox.Result, error)
	for i := range o {
		if o[i].Run != nil {
			var end func(mailbox.Result, error)
			ctx, end = o[i].Run(ctx, name, j) //nolint:fatcontext // each observer adds its own
			ends = append(ends, end)
		}
	}
	return ctx, began(ends)
}

func (o observers) inference(ctx context.Context, c llm.Call) (context.Context, func(llm.Call)) {
	var ends []func(llm.Call)
	for i := range o {
		if o[i].Inference != nil {
			var end func(llm.Call)
			ctx, end = o[i].Inference(ctx, c) //nolint:fatcontext // each observer adds its own
			ends = append(ends, end)
		}
	}
	return ctx, func(c llm.Call) {
		for _, end := range slices.Backward(ends) {
			if end != nil {
				end(c)
			}
		}
	}
}

func (o observers) tool(ctx context.Context, name string, call abi.ToolCall) (context.Context, func(abi.ToolResult, error)) {
	var ends []func(abi.ToolResult, error)
	for i := range o {
		if o[i].Tool != nil {
			var end func(abi.ToolResult, error)
			ctx, end = o[i].Tool(ctx, name, call) //nolint:fatcontext // each observer adds its own
			ends = append(ends, end)
		}
	}
	return ctx, began(ends)
}

func (o observers) event(ctx context.Context, e agent.Event) {
	for i := range o {
		if o[i].Event != nil {
			o[i].Event(ctx, e)
		}
	}
}

func (o observers) hook(r *phases.Record) {
	for i := range o {
		if o[i].Hook != nil {
			o[i].Hook(*r)
		}
	}
}

func (o observers) compaction(ctx context.Context, e compaction.Event) {
	for i := range o {
		if o[i].Compaction != nil {
			o[i].Compaction(ctx, e)
		}
	}
}

func (o observers) task(e background.Event) {
	for i := range o {
		if o[i].Task != nil {
			o[i].Task(e)
		}
	}
}

// tools are an agent's, observed.
type tools struct {
	own       agent.Tools
	name      string
	observers observers
}

// errPanicked is what observers receive of a tool that panicked or ended its goroutine.
var errPanicked = errors.New("mortise: the tool panicked")

// Tools implements agent.Tools.
func (t tools) Tools() []abi.Tool { return t.own.Tools() }

// CallTool implements agent.Tools.
func (t tools) CallTool(ctx context.Context, call abi.ToolCall) (result abi.ToolResult, err error) {
	ctx, end := t.observers.tool(ctx, t.name, call)
	err = errPanicked
	defer func() { end(result, err) }()
	return t.own.CallTool(ctx, call) //nolint:wrapcheck // the tool's own
}
