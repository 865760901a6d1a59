package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// carried is what the execution of a call came to. Nothing was executed when
// result is nil.
type carried struct {
	result  *abi.ToolResult
	command phases.Command
	refused error
	// invocation holds what a plugin's tool replied beyond its result.
	invocation *phases.Invocation
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

// change does what a call asked for, and returns the messages after it. If it is refused,
// the model reads so in the result: the tool was executed, and what it wanted to be kept is
// not.
func (r *run) change(ctx context.Context, call abi.ToolCall, c *carried, messages []abi.Message) []abi.Message {
	err := c.refused
	if err == nil && !c.command.Empty() {
		c.command.By = "tool " + call.Name
		_, err = r.who.phases.SubmitAt(ctx, r.state, r.frame(abi.AfterToolExecute, frame{messages: messages, call: &call, result: c.result}), c.command)
	}
	if err == nil && c.invocation != nil {
		var out phases.Outcome
		out, err = r.who.phases.Settle(ctx, r.state, r.frame(abi.AfterToolExecute, frame{messages: messages, call: &call, result: c.result}), c.invocation)
		r.apply(ctx, out, false)
		messages = out.Messages
	}
	if err != nil {
		result := failed(call, fmt.Sprintf("Execution failed: the tool was executed, but the changes that it asked for were refused: %s", clip(err.Error(), maxRefusal)))
		c.result = &result
	}
	r.showChange(ctx)
	return messages
}

// maxRefusal bounds the reason in a result, in bytes.
const maxRefusal = 2 << 10

// command is what a tool asked for that returned without an error.
func (c *carried) take(call *Call) {
	command, err := call.wanted()
	c.command, c.refused, c.invocation = command, errors.Join(c.refused, err), call.invocation
}
