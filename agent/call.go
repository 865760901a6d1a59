package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// maxOutput is how much text one tool_call_stream_delta has, in bytes.
const maxOutput = 64 << 10

// ErrCallOver is returned to a tool that says something after its call has ended: it
// has returned, or was abandoned.
var ErrCallOver = errors.New("the call is over")

// Call is what a native tool may do besides returning its result: read the state of
// the run, ask for changes of it, and tell listeners how it gets on. [CallOf] finds it.
// It is safe for concurrent use until the tool has returned. A nil Call, as without a
// run, has no state and does nothing.
type Call struct {
	call   abi.ToolCall
	read   func(key string) (any, bool)
	events chan<- Event
	// invocation is for a plugin that offers the tool.
	invocation *phases.Invocation
	// over is closed when the call has ended.
	over chan struct{}

	mu      sync.Mutex
	command phases.Command
	failed  error
}

type callKey struct{}

// CallOf returns the call that a tool executes, from the context of
// [Tools.CallTool].
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// State returns the value of a full key as it was when the calls of the step began.
// It is shared; do not change it.
func (c *Call) State(key string) (any, bool) {
	if c == nil {
		return nil, false
	}
	return c.read(key)
}

// Change asks for changes of the run: updates of state, scheduled actions, custom
// effects. They are done, all or none, when the tool has returned without an error, and
// before the plugins see its result; later commands of the same call come after earlier
// ones. If they are refused, the model reads why instead of the result. Of two calls at the
// same time that change one key exclusively, the later one is refused.
func (c *Call) Change(command phases.Command) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	both, err := c.command.Extend(command)
	if err != nil {
		c.failed = errors.Join(c.failed, err)
		return
	}
	c.command = both
}

// Output tells listeners what the tool writes while it runs (tool_call_stream_delta).
// It is not part of the result. It waits for the listener.
func (c *Call) Output(ctx context.Context, text string) error {
	for text != "" {
		part := clip(text, maxOutput)
		if part == "" { // not even one character
			part = text[:min(len(text), maxOutput)]
		}
		text = text[len(part):]
		if err := c.send(ctx, Event{Type: EventToolCallStreamDelta, Delta: part}); err != nil {
			return err
		}
	}
	return nil
}

// Activity is something that a tool shows while it runs, such as a plan or a list of
// what it searches.
type Activity struct {
	// ID of the message in which it is shown; that of the call when empty.
	ID string
	// Type names its kind, in the terms of the user interface.
	Type string
	// Content is all of it. Replace lays it over what was shown under the same ID.
	Content any
	Replace bool
}

// Show shows an activity (activity_snapshot).
func (c *Call) Show(ctx context.Context, a Activity) error {
	return c.send(ctx, Event{Type: EventActivitySnapshot, MessageID: c.activity(a.ID), ActivityType: a.Type, Content: a.Content, Replace: a.Replace})
}

// Patch changes an activity that is shown (activity_delta). The patch is a JSON Patch
// of its content. An empty id is that of the call.
func (c *Call) Patch(ctx context.Context, id, activityType string, patch ...PatchOp) error {
	return c.send(ctx, Event{Type: EventActivityDelta, MessageID: c.activity(id), ActivityType: activityType, Patch: patch})
}

func (c *Call) activity(id string) string {
	if id == "" && c != nil {
		return c.call.ID
	}
	return id
}

// send hands an event to the goroutine of the run.
func (c *Call) send(ctx context.Context, e Event) error {
	if c == nil {
		return nil
	}
	e.Call = &abi.ToolCall{ID: c.call.ID, Name: c.call.Name}
	select {
	case <-c.over:
		return fmt.Errorf("agent: call %.80s: %w", c.call.ID, ErrCallOver)
	default:
	}
	select {
	case c.events <- e:
		return nil
	case <-c.over:
		return fmt.Errorf("agent: call %.80s: %w", c.call.ID, ErrCallOver)
	case <-ctx.Done():
		return fmt.Errorf("agent: call %.80s: %w", c.call.ID, context.Cause(ctx))
	}
}

// wanted is what the call asked for.
func (c *Call) wanted() (phases.Command, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.command, c.failed
}
