package abi

// Phase is a moment of a run at which plugins are called.
type Phase string

// The nine phases, in the order in which a run reaches them.
const (
	// RunStart fires once when a run starts.
	RunStart Phase = "run_start"
	// StepStart fires before each step; a step is one inference and its tools.
	StepStart Phase = "step_start"
	// BeforeInference fires before the model is asked.
	BeforeInference Phase = "before_inference"
	// AfterInference fires when the model has answered.
	AfterInference Phase = "after_inference"
	// ToolGate asks whether a tool call may run.
	ToolGate Phase = "tool_gate"
	// BeforeToolExecute fires before an allowed tool call runs.
	BeforeToolExecute Phase = "before_tool_execute"
	// AfterToolExecute fires when a tool call has a result.
	AfterToolExecute Phase = "after_tool_execute"
	// StepEnd fires after each step.
	StepEnd Phase = "step_end"
	// RunEnd fires once when a run ends, however it ends.
	RunEnd Phase = "run_end"
)

// Phases around a compaction. They fire at most once for each compaction, between the
// phases of a run.
const (
	// BeforeCompaction fires when a compaction was admitted and is about to start.
	BeforeCompaction Phase = "before_compaction"
	// AfterCompaction fires when a compaction has replaced messages, or has failed.
	AfterCompaction Phase = "after_compaction"
)

// CompactionPhases returns the phases around a compaction, in their order.
func CompactionPhases() []Phase { return []Phase{BeforeCompaction, AfterCompaction} }

// Phases returns the nine phases of a run in canonical order.
func Phases() []Phase {
	return []Phase{
		RunStart, StepStart, BeforeInference, AfterInference, ToolGate,
		BeforeToolExecute, AfterToolExecute, StepEnd, RunEnd,
	}
}

// Mode limits how much a hook may do to a run. A reply with more than its mode
// allows is refused and counted.
type Mode string

// Modes, from the least to the most.
const (
	// ModeObserve may update state and emit events.
	ModeObserve Mode = "observe"
	// ModeTransform may also change messages, tools and the inference request.
	ModeTransform Mode = "transform"
	// ModeGate may also block, suspend or answer a tool call and stop a run.
	ModeGate Mode = "gate"
)

// View selects which messages a hook wants to see. The rest is not sent.
type View string

// Views.
const (
	// ViewNone sends no messages. The empty string means the same.
	ViewNone View = "none"
	// ViewLast sends the newest message.
	ViewLast View = "last"
	// ViewDelta sends what came since the previous event of the same run at the
	// same plugin, and everything the first time.
	ViewDelta View = "delta"
	// ViewWindow sends the newest n messages, n being [Hook.Window].
	ViewWindow View = "window"
	// ViewAll sends every message that the model would see.
	ViewAll View = "all"
)

// FailurePolicy decides what happens to a run when a hook fails: traps, misses its
// deadline, replies with something undecodable.
type FailurePolicy string

// Failure policies. The default is fail for gates and ignore for the others.
const (
	// FailRun ends the run with the error; at the tool gate it blocks the call.
	FailRun FailurePolicy = "fail"
	// FailIgnore records the failure and continues without the reply.
	FailIgnore FailurePolicy = "ignore"
	// FailQuarantine ignores, and after repeated failures stops calling the
	// hook for a while.
	FailQuarantine FailurePolicy = "quarantine"
)
