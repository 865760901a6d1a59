package abi

// RunIdentity says which run an event belongs to.
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
	// it came from the program itself.
	Adapter string `json:"adapter,omitempty"`
}

// RunMode is why a run was started. A gate may be stricter when nobody watches.
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
	// Response is set at after_inference.
	Response *Response `json:"response,omitempty"`
	// Call is set at the tool phases.
	Call *ToolCall `json:"call,omitempty"`
	// Result and ResultMessageID are set at after_tool_execute. The id is that
	// of the tool message that will carry the result, so that a transform can
	// replace its content before anyone sees it.
	Result          *ToolResult `json:"result,omitempty"`
	ResultMessageID string      `json:"result_message_id,omitempty"`
	// Notices arrived in the inbox since the previous step.
	Notices []Notice `json:"notices,omitempty"`
	// Action is set when a scheduled action is due, Effect when an effect is to be
	// carried out. Such an event is for the handler alone, not for the hooks.
	Action *Action `json:"action,omitempty"`
	Effect *Effect `json:"effect,omitempty"`
	Config any     `json:"config,omitempty"`
}

// NoticeKind is what a notice says.
type NoticeKind string

// Kinds of notices.
const (
	NoticeCompleted NoticeKind = "completed"
	NoticeFailed    NoticeKind = "failed"
	NoticeCancelled NoticeKind = "cancelled"
	// NoticeCustom is sent by a task while it runs.
	NoticeCustom NoticeKind = "custom"
	// NoticeMessages carries messages for the conversation.
	NoticeMessages NoticeKind = "messages"
)

// Notice is one entry of a run's inbox: news from background work.
type Notice struct {
	Kind      NoticeKind `json:"kind"`
	TaskID    string     `json:"task_id,omitempty"`
	EventType string     `json:"event_type,omitempty"`
	Payload   any        `json:"payload,omitempty"`
	Result    any        `json:"result,omitempty"`
	Error     string     `json:"error,omitempty"`
	Messages  []Message  `json:"messages,omitempty"`
	// Housekeeping notices are the runtime's own and are never shown to a model.
	Housekeeping bool `json:"housekeeping,omitempty"`
}

// FieldMessageIndex is a field of an [Event] in MessagePack beside those of the struct,
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
