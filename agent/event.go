package agent

import (
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// EventType names an event. Names and fields are those of the run protocol.
type EventType string

// Types of events.
const (
	EventRunStart          EventType = "run_start"
	EventStepStart         EventType = "step_start"
	EventPhase             EventType = "phase"
	EventInferenceComplete EventType = "inference_complete"
	EventToolCallStart     EventType = "tool_call_start"
	EventToolCallDone      EventType = "tool_call_done"
	EventTextDelta         EventType = "text_delta"
	EventReasoningDelta    EventType = "reasoning_delta"
	EventToolCallDelta     EventType = "tool_call_delta"
	EventToolCallReady     EventType = "tool_call_ready"
	EventToolCallCancel    EventType = "tool_call_cancel"
	EventStreamReset       EventType = "stream_reset"
	EventToolCallResumed   EventType = "tool_call_resumed"
	EventStateSnapshot     EventType = "state_snapshot"
	// EventStateDelta follows a phase or a call that changed the state, once a
	// snapshot was sent.
	EventStateDelta EventType = "state_delta"
	// EventMessagesSnapshot comes at the end of a step, or of the run, when the log
	// holds what no other event told: messages that plugins added or changed, and
	// those that arrived in the inbox.
	EventMessagesSnapshot EventType = "messages_snapshot"
	// EventActivitySnapshot and the next two come from native tools while they run,
	// see [Call].
	EventActivitySnapshot    EventType = "activity_snapshot"
	EventActivityDelta       EventType = "activity_delta"
	EventToolCallStreamDelta EventType = "tool_call_stream_delta"
	// EventReasoningEncrypted has what a provider wants back and no one else can read.
	EventReasoningEncrypted EventType = "reasoning_encrypted_value"
	EventCustom             EventType = "custom"
	EventStepEnd            EventType = "step_end"
	EventRunFinish          EventType = "run_finish"
)

// Event is what happened in a run. Which fields are set follows from Type. Run_finish is
// terminal: exactly one is sent for each run_start. A run that waits and continues starts
// and finishes again, with the same RunID.
//
// Of a call, tool_call_start comes first: when the model begins to write it, if the
// answer is streamed, and else before its gate. It ends in tool_call_done or, if it
// does not come to that, in tool_call_cancel or stream_reset.
type Event struct {
	Type     EventType `json:"event_type"`
	At       time.Time `json:"at"`
	ThreadID string    `json:"thread_id"`
	RunID    string    `json:"run_id"`
	Step     int       `json:"step,omitempty"`

	// Identity is the origin of the run (run_start).
	Identity *abi.RunIdentity `json:"identity,omitempty"`
	// Phase is about to fire (phase).
	Phase abi.Phase `json:"phase,omitempty"`
	// MessageID of the message that the step will write (step_start), or in which an
	// activity is shown.
	MessageID string `json:"message_id,omitempty"`
	// Model, Usage and DurationMS belong to inference_complete.
	Model      string     `json:"model,omitempty"`
	Usage      *abi.Usage `json:"usage,omitempty"`
	DurationMS int64      `json:"duration_ms,omitempty"`
	// Delta is text that was added (text_delta, reasoning_delta, tool_call_delta,
	// tool_call_stream_delta).
	Delta string `json:"delta,omitempty"`
	// Reason is why a call will not come, or a stream begins anew (tool_call_cancel,
	// stream_reset).
	Reason string `json:"reason,omitempty"`
	// TargetID is the ticket of the call (tool_call_resumed, tool_call_cancel).
	TargetID string `json:"target_id,omitempty"`
	// Ticket is the one that was decided; do not change it (tool_call_resumed).
	Ticket *Ticket `json:"-"`
	// State is what plugins keep for the thread, by key; do not change it
	// (state_snapshot).
	State map[string]any `json:"snapshot,omitempty"`
	// Patch is what changed: of the state, whose JSON name of it is "delta" (state_delta),
	// or of an activity (activity_delta).
	Patch []PatchOp `json:"patch,omitempty"`
	// Log is the whole log; do not change it. Its JSON name is "messages"
	// (messages_snapshot).
	Log []abi.Message `json:"-"`
	// ActivityType, Content and Replace belong to activities.
	ActivityType string `json:"activity_type,omitempty"`
	Content      any    `json:"content,omitempty"`
	Replace      bool   `json:"replace,omitempty"`
	// EncryptedValue belongs to reasoning_encrypted_value.
	EncryptedValue string `json:"encrypted_value,omitempty"`
	// Call and Result belong to the tool events.
	Call   *abi.ToolCall   `json:"call,omitempty"`
	Result *abi.ToolResult `json:"result,omitempty"`
	// RewrittenBy are the plugins that changed the arguments of Call, which are those that
	// it runs with (phase, tool_call_done, tool_call_resumed).
	RewrittenBy []string `json:"rewritten_by,omitempty"`
	// Name, By and Payload belong to custom events, which plugins emit.
	Name    string `json:"name,omitempty"`
	By      string `json:"by,omitempty"`
	Payload any    `json:"payload,omitempty"`
	// Messages is the length of the log, ViewMessages that of what the model
	// sees (step_end).
	Messages     int `json:"messages,omitempty"`
	ViewMessages int `json:"view_messages,omitempty"`
	// Outcome of the run (run_finish).
	Outcome *Result `json:"result_of_run,omitempty"`
}

// PatchOp is one operation of a JSON Patch: add, replace or remove at a path.
type PatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// MarshalJSON writes the names of the run protocol, in which one name denotes
// different things in different events.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	switch e.Type {
	case EventStateDelta:
		patch := e.Patch
		e.Patch = nil
		return json.Marshal(struct {
			plain

			Delta []PatchOp `json:"delta"`
		}{plain(e), patch})
	case EventMessagesSnapshot:
		return json.Marshal(struct {
			plain

			Messages []abi.Message `json:"messages"`
		}{plain(e), e.Log})
	default:
		return json.Marshal(plain(e))
	}
}
