package abi

// RunIdentity identifies the run of an event.
type RunIdentity struct {
	ThreadID    string `json:"thread_id"`
	RunID       string `json:"run_id"`
	ParentRunID string `json:"parent_run_id,omitempty"`
	AgentID     string `json:"agent_id,omitempty"`
	// DispatchID is that of the request in the mailbox, SessionID that of the
	// process that took it.
	DispatchID string `json:"dispatch_id,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	// Mode is foreground when empty.
	Mode RunMode `json:"mode,omitempty"`
	// Adapter is the protocol by which the request came, such as "a2a"; empty when
	// it came from the program itself. Origin is who asked, the user when empty.
	Adapter string `json:"adapter,omitempty"`
	Origin  string `json:"origin,omitempty"`
	// ParentThreadID is the thread of the run that delegated this one.
	ParentThreadID string `json:"parent_thread_id,omitempty"`
	// SenderID, TransportRequestID and DispatchIDHint are what the request gave for them.
	SenderID           string `json:"sender_id,omitempty"`
	TransportRequestID string `json:"transport_request_id,omitempty"`
	DispatchIDHint     string `json:"dispatch_id_hint,omitempty"`
}

// RunMode is why a run was started. A gate may be stricter when no person watches.
type RunMode string

// Run modes.
const (
	RunForeground RunMode = "foreground"
	RunScheduled  RunMode = "scheduled"
	RunResume     RunMode = "resume"
	// RunInternalWake is a run that background work started.
	RunInternalWake RunMode = "internal_wake"
)

// Event is what a hook gets.
type Event struct {
	// ABI is the contract version that host and guest agreed on.
	ABI   int         `json:"abi"`
	Phase Phase       `json:"phase"`
	Run   RunIdentity `json:"run"`
	// NowMS is the host's time in milliseconds since 1970; a guest has no clock.
	NowMS int64 `json:"now_ms,omitempty"`
	// Step counts from 1; 0 at run_start.
	Step int `json:"step"`
	// Messages are those that the hook's [View] asked for.
	Messages []Message `json:"messages,omitempty"`
	// MessagesFrom is the index of the first of them in the conversation.
	MessagesFrom int `json:"messages_from,omitempty"`
	// MessagesTotal is the length of the conversation.
	MessagesTotal int `json:"messages_total"`
	// State holds the values of the hook's own keys, without the name prefix.
	// A key that was never written is absent.
	State map[string]any `json:"state,omitempty"`
	// Request is set at before_inference for a hook that includes [IncludeRequest].
	Request *InferenceRequest `json:"request,omitempty"`
	// Response is set at after_inference.
	Response *Response `json:"response,omitempty"`
	// Call is set at the tool phases, with the arguments that it would run with.
	Call *ToolCall `json:"call,omitempty"`
	// RewrittenBy are the plugins that changed the arguments of Call since the model
	// wrote them.
	RewrittenBy []string `json:"rewritten_by,omitempty"`
	// Result and ResultMessageID are set at after_tool_execute. The id is that
	// of the tool message that will carry the result, so that a transform can
	// replace its content before anyone sees it.
	Result          *ToolResult `json:"result,omitempty"`
	ResultMessageID string      `json:"result_message_id,omitempty"`
	// Notices arrived in the inbox since the previous step.
	Notices []Notice `json:"notices,omitempty"`
	// Action is set when a scheduled action is due, Effect when an effect is to be
	// executed. Such an event is for the handler alone, not for the hooks.
	Action *Action `json:"action,omitempty"`
	Effect *Effect `json:"effect,omitempty"`
	// Compaction is set at before_compaction and after_compaction.
	Compaction *Compaction `json:"compaction,omitempty"`
	// End is set at run_end.
	End    *RunEnding `json:"end,omitempty"`
	Config any        `json:"config,omitempty"`
}

// InferenceRequest is what the model is about to be asked, before the effects of the
// phase. Nil fields are left to the provider.
type InferenceRequest struct {
	Model           string   `json:"model,omitempty"`
	FallbackModels  []string `json:"fallback_models,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty"`
	MaxTokens       *int64   `json:"max_tokens,omitempty"`
	ReasoningEffort *string  `json:"reasoning_effort,omitempty"`
	// Tools are those that the model may call, with their schemas.
	Tools []Tool `json:"tools,omitempty"`
	// System is the system prompt, for a hook that includes [IncludeSystem].
	System string `json:"system,omitempty"`
}

// RunEnding is how a run, or one activation of a run that waits, came to its end.
type RunEnding struct {
	Termination TerminationType `json:"termination"`
	// Code belongs to [TerminationStopped]. Detail is for people.
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Error is set when the run failed.
	Error string `json:"error,omitempty"`
	// Steps, Usage and Cost are totals of the run, over all of its activations. Cost is
	// in the unit of the operator's prices.
	Steps int     `json:"steps,omitempty"`
	Usage *Usage  `json:"usage,omitempty"`
	Cost  float64 `json:"cost,omitempty"`
	// DurationMS is how long the run was active; what it waited does not count.
	DurationMS int64 `json:"duration_ms,omitempty"`
}

// TerminationType is why a run ended.
type TerminationType string

// Reasons for the end of a run.
const (
	TerminationNatural   TerminationType = "natural_end"
	TerminationStopped   TerminationType = "stopped"
	TerminationBlocked   TerminationType = "blocked"
	TerminationSuspended TerminationType = "suspended"
	TerminationCancelled TerminationType = "cancelled"
	TerminationFailed    TerminationType = "error"
)

// NoticeKind is what a notice says.
type NoticeKind string

// Kinds of notifications.
const (
	NoticeCompleted NoticeKind = "completed"
	NoticeFailed    NoticeKind = "failed"
	NoticeCancelled NoticeKind = "cancelled"
	// NoticeCustom is sent by a task while it runs.
	NoticeCustom NoticeKind = "custom"
	// NoticeMessages carries messages for the conversation.
	NoticeMessages NoticeKind = "messages"
)

// Notice is one entry of a run's inbox: a notification from background work.
type Notice struct {
	Kind      NoticeKind `json:"kind"`
	TaskID    string     `json:"task_id,omitempty"`
	EventType string     `json:"event_type,omitempty"`
	Payload   any        `json:"payload,omitempty"`
	Result    any        `json:"result,omitempty"`
	Error     string     `json:"error,omitempty"`
	Messages  []Message  `json:"messages,omitempty"`
	// Housekeeping notices are the runtime's own and those of plugins, and are never shown
	// to a model.
	Housekeeping bool `json:"housekeeping,omitempty"`
}

// FieldMessageIndex is a field of an [Event] in MessagePack besides those of the struct,
// which a host writes before the messages, and only with them. It is binary and holds
// [MessageMarkSize] bytes for each message: the length of its encoding (32 bits, the
// lowest byte first), its role as one of the marks, and three bytes that are zero and mean
// nothing yet. With it a guest finds a message without reading those before it. A
// guest that finds no index, or one that does not fit, reads the messages themselves.
//
// For a hook with [Hook.LazyMessages] the index comes without the messages. There is none
// if there are no messages.
const (
	FieldMessageIndex = "message_index"
	MessageMarkSize   = 8
)

// Marks of roles. Zero is a role that is none of these.
const (
	MarkSystem    = 1
	MarkUser      = 2
	MarkAssistant = 3
	MarkTool      = 4
)
