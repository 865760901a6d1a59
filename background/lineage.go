package background

import (
	"cmp"
	"context"

	"github.com/mortise-dev/mortise/abi"
)

// Lineage is where a task comes from. Empty fields are not known.
type Lineage struct {
	// TaskID is the task that spawned this one.
	TaskID string `json:"task_id,omitempty"`
	// RunID, CallID and AgentID are the run, the tool call and the agent in which
	// it was spawned.
	RunID   string `json:"run_id,omitempty"`
	CallID  string `json:"call_id,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
}

// IsZero reports whether nothing is known.
func (l Lineage) IsZero() bool { return l == Lineage{} }

// or fills empty fields of l from other.
func (l Lineage) or(other Lineage) Lineage {
	return Lineage{
		TaskID:  cmp.Or(l.TaskID, other.TaskID),
		RunID:   cmp.Or(l.RunID, other.RunID),
		CallID:  cmp.Or(l.CallID, other.CallID),
		AgentID: cmp.Or(l.AgentID, other.AgentID),
	}
}

type lineageKey struct{}

// WithLineage returns a context whose spawns come from l. Empty fields of l
// stay as they were in ctx. It travels with the context, so also through what a
// body or a tool starts concurrently. The context of a body has the id of its task.
func WithLineage(ctx context.Context, l Lineage) context.Context {
	return context.WithValue(ctx, lineageKey{}, l.or(LineageOf(ctx)))
}

// ToolContext is [WithLineage] for a tool that a run calls: what the tool spawns
// comes from that run and call, and from the task in which the run is executed, if it is
// in one. It has the form of agent.Config's ToolContext.
func ToolContext(ctx context.Context, run abi.RunIdentity, call abi.ToolCall) context.Context {
	return WithLineage(ctx, Lineage{RunID: run.RunID, CallID: call.ID, AgentID: run.AgentID})
}

// LineageOf returns the lineage of a context.
func LineageOf(ctx context.Context) Lineage {
	l, _ := ctx.Value(lineageKey{}).(Lineage)
	return l
}
