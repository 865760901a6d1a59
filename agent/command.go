package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// carried is what the execution of a call came to. Nothing was carried out when
// result is nil.
type carried struct {
	result  *abi.ToolResult
	command phases.Command
	refused error
}

// settleCommands finds the commands of calls that ran at the same time and do not go
// together: each is refused that collides with one before it.
func (r *run) settleCommands(calls []abi.ToolCall, done []carried) {
	var kept []phases.Part
	for i := range done {
		if done[i].refused != nil || done[i].command.Empty() {
			continue
		}
		part := phases.Part{CallID: calls[i].ID, Command: done[i].command}
		for _, earlier := range kept {
			if _, err := r.who.phases.Merge(r.state, earlier, part); err != nil {
				done[i].refused = err
				break
			}
		}
		if done[i].refused == nil {
			kept = append(kept, part)
		}
	}
}

// change does what a call asked for. If it is refused, the result says so: the tool was
// carried out, and what it wanted to be kept is not.
func (r *run) change(ctx context.Context, call abi.ToolCall, c *carried) {
	err := c.refused
	if err == nil && !c.command.Empty() {
		c.command.By = "tool " + call.Name
		_, err = r.who.phases.SubmitAt(ctx, r.state, phases.Frame{
			Phase: abi.AfterToolExecute, Run: r.id, Step: r.step, Messages: r.view, Call: &call, Result: c.result,
		}, c.command)
	}
	if err != nil {
		result := failed(call, fmt.Sprintf("Execution failed: the tool was carried out, but the changes that it asked for were refused: %s", clip(err.Error(), maxRefusal)))
		c.result = &result
	}
	r.showChange(ctx)
}

// maxRefusal bounds the reason in a result, in bytes.
const maxRefusal = 2 << 10

// command is what a tool asked for that returned without an error.
func (c *carried) take(call *Call) {
	command, err := call.wanted()
	c.command, c.refused = command, errors.Join(c.refused, err)
}
