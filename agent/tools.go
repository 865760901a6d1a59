package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// errToolTimeout ends a tool that takes longer than Config.ToolTimeout.
var errToolTimeout = errors.New("the tool took too long")

// executeAll runs tools at the same time, so many at once as the config says, and
// tells meanwhile what they say. The messages are what the run has come to. A result is nil
// where the tool was abandoned or did not begin because the run's context was done.
func (r *run) executeAll(ctx context.Context, calls []abi.ToolCall, keys []string, messages []abi.Message) ([]carried, error) {
	done, errs := make([]carried, len(calls)), make([]error, len(calls))
	events, over := make(chan Event), make(chan struct{})
	handles := make([]*Call, len(calls))
	read := r.state.Store().Snapshot().Read // All see the same state.
	for i := range calls {
		frame := phases.Frame{Run: r.id, Step: r.step, Messages: messages, Call: &calls[i]}
		handles[i] = &Call{call: calls[i], read: read, events: events, over: make(chan struct{}), invocation: r.who.phases.Invoke(r.state, frame)}
	}
	go func() {
		defer close(over)
		places := make(chan struct{}, r.cfg.MaxParallel)
		var group sync.WaitGroup
		for i := range calls {
			places <- struct{}{}
			group.Go(func() {
				defer func() { <-places }()
				if errs[i] = ctx.Err(); errs[i] == nil {
					done[i], errs[i] = r.execute(ctx, calls[i], keys[i], handles[i])
				}
			})
		}
		group.Wait()
	}()
	for told := true; told; {
		select {
		case e := <-events:
			r.send(ctx, e)
		case <-over:
			told = false
		}
	}
	r.settleCommands(calls, done)
	for _, err := range errs {
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// execute runs a tool, raced against the run's context and its own deadline: a tool
// that does not come back within the grace time after that is abandoned. Several
// goroutines may run it.
func (r *run) execute(ctx context.Context, call abi.ToolCall, key string, handle *Call) (carried, error) {
	defer close(handle.over)
	if !slices.ContainsFunc(r.known, func(t abi.Tool) bool { return t.Name == call.Name }) {
		return answered(failed(call, fmt.Sprintf("tool '%.80s' not found", call.Name))), nil
	}
	call.IdempotencyKey = key
	tctx, cancel := context.WithTimeoutCause(context.WithValue(handle.invocation.Context(ctx), callKey{}, handle), r.cfg.ToolTimeout, errToolTimeout)
	defer cancel()
	done := make(chan carried, 1)
	tools, id := r.who.tools, r.id // for a tool that is abandoned
	go callTool(tctx, func(ctx context.Context) (abi.ToolResult, error) {
		return tools.CallTool(r.cfg.ToolContext(ctx, id, call), call)
	}, call, handle, done)
	select {
	case c := <-done:
		return c, nil
	case <-tctx.Done():
	}
	grace := time.NewTimer(r.cfg.Grace)
	defer grace.Stop()
	select {
	case c := <-done:
		return c, nil
	case <-grace.C:
		r.cfg.Logger.WarnContext(ctx, "tool abandoned", "tool", call.Name, "call_id", call.ID, "grace", r.cfg.Grace)
	}
	if err := ctx.Err(); err != nil {
		return carried{}, err
	}
	return answered(failed(call, fmt.Sprintf("Execution failed: the tool did not come back within %v", r.cfg.ToolTimeout))), nil
}

// lingering is a context that ends Config.Grace after ctx is cancelled: what a tool has done is shown to the plugins, or it would be withheld.
func (r *run) lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(r.cfg.Grace, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(out, func() { late.Stop() })
	})
	return out, func() { stop(); cancel(nil) }
}

// answered is a result without a command.
func answered(result abi.ToolResult) carried { return carried{result: &result} }

// callTool sends one result, whatever the tool does: errors, panics and a tool
// that ends its goroutine become error results. Only a tool that returned without an
// error gets what it asked for.
func callTool(ctx context.Context, do func(context.Context) (abi.ToolResult, error), call abi.ToolCall, handle *Call, done chan<- carried) {
	out := answered(failed(call, "Internal error: the tool ended its goroutine"))
	defer func() {
		if p := recover(); p != nil {
			out = answered(failed(call, fmt.Sprintf("Internal error: the tool panicked: %.512v", p)))
		}
		done <- out
	}()
	answer, err := do(ctx)
	if errors.Is(context.Cause(ctx), ErrContinued) && (errors.Is(err, context.Canceled) || errors.Is(err, ErrContinued)) {
		out = answered(failed(call, maybeExecuted))
		return
	}
	if err != nil {
		out = answered(failed(call, "Execution failed: "+err.Error()))
		return
	}
	if answer.Status == "" {
		answer.Status = abi.ToolSuccess
	}
	out = answered(answer)
	out.take(handle)
}

// refuse answers a call that is not run whatever the gates say: it names no tool,
// or one that plugins took from the last request.
func (r *run) refuse(call abi.ToolCall) (abi.ToolResult, bool) {
	named := func(t abi.Tool) bool { return t.Name == call.Name }
	switch {
	case call.Name == unnamedTool:
		return failed(call, "Invalid arguments: the call names no tool"), true
	case slices.ContainsFunc(r.known, named) && !slices.ContainsFunc(r.offered, named):
		return denied(call, fmt.Sprintf("tool '%.80s' is not available in this step", call.Name)), true
	default:
		return abi.ToolResult{}, false
	}
}

func failed(call abi.ToolCall, text string) abi.ToolResult {
	return abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolError, Message: text}
}

// withheld replaces a result that a plugin did not get to see.
func withheld(call abi.ToolCall) abi.ToolResult {
	return failed(call, "[The result is withheld: a plugin did not get to see it]")
}

// frontend reports whether the caller executes a tool.
func (r *run) frontend(name string) bool {
	named := func(t abi.Tool) bool { return t.Name == name }
	return slices.ContainsFunc(r.req.FrontendTools, named) && !slices.ContainsFunc(r.who.tools.Tools(), named)
}

func denied(call abi.ToolCall, reason string) abi.ToolResult {
	return failed(call, "Denied: "+reason)
}

func suspended(call abi.ToolCall) abi.ToolResult {
	text := fmt.Sprintf("Tool '%s' suspended: awaiting decision", call.Name)
	return abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolPending, Message: text}
}

func (r *run) toolKind(name string) abi.ToolKind {
	for _, t := range r.known {
		if t.Name == name && t.Kind != "" {
			return t.Kind
		}
	}
	return abi.ToolOther
}

// resultMessage renders a result as the message that the model reads.
func resultMessage(call abi.ToolCall, result abi.ToolResult, id string) abi.Message {
	m := abi.Message{ID: id, Role: abi.RoleTool, ToolCallID: call.ID}
	phases.SetResult(&m, &result)
	return m
}
