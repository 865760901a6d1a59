package abi

// Reply is what a hook answers. The zero Reply is "no opinion".
type Reply struct {
	Updates []Update `json:"updates,omitempty"`
	Effects []Effect `json:"effects,omitempty"`
	// Actions are scheduled for this phase or a later one.
	Actions []Action `json:"actions,omitempty"`
	// Gate answers the tool gate. Nil is no opinion, which is not "allow".
	Gate *GateDecision `json:"gate,omitempty"`
}

// Op is an operation on a state value.
type Op string

// Operations. All but set are commutative.
const (
	// OpSet replaces the value.
	OpSet Op = "set"
	// OpMerge sets the fields of a map, one level deep.
	OpMerge Op = "merge"
	// OpAppend adds the elements of a list at the end.
	OpAppend Op = "append"
	// OpAdd adds a number.
	OpAdd Op = "add"
	// OpRemove removes the named fields of a map (value: a list of names) or
	// equal elements of a list.
	OpRemove Op = "remove"
)

// Update changes one state value.
type Update struct {
	Key   string `json:"key"`
	Op    Op     `json:"op"`
	Value any    `json:"value,omitempty"`
}

// Action is something to be done at a phase by the plugin that declares Key among
// its actions: the name alone for a plugin's own, "<plugin>/<name>" for another's.
type Action struct {
	Phase   Phase  `json:"phase"`
	Key     string `json:"key"`
	Payload any    `json:"payload,omitempty"`
	// ID and By are set by the host: a number of the run, and the plugin that
	// scheduled the action.
	ID int64  `json:"id,omitempty"`
	By string `json:"by,omitempty"`
}

// EffectType is the kind of an effect.
type EffectType string

// Kinds of effects.
const (
	// EffectAppendMessages adds Messages to the conversation.
	EffectAppendMessages EffectType = "append_messages"
	// EffectReplaceMessage replaces the content of MessageID with Content. Role,
	// calls and links stay.
	EffectReplaceMessage EffectType = "replace_message"
	// EffectMaskMessage hides the content of MessageID behind Text; the original
	// stays readable for the operator.
	EffectMaskMessage EffectType = "mask_message"
	// EffectPinMessage keeps MessageID word for word through every compaction.
	EffectPinMessage EffectType = "pin_message"
	// EffectAddContext adds Context to the next request.
	EffectAddContext EffectType = "add_context"
	// EffectExcludeTools removes Tools from the next request.
	EffectExcludeTools EffectType = "exclude_tools"
	// EffectIncludeTools restricts the next request to Tools.
	EffectIncludeTools EffectType = "include_tools"
	// EffectOverrideInference changes the next request by Override.
	EffectOverrideInference EffectType = "override_inference"
	// EffectStop ends the run with Code and Detail.
	EffectStop EffectType = "stop"
	// EffectRequestCompaction asks for a compaction, with Focus if any.
	EffectRequestCompaction EffectType = "request_compaction"
	// EffectEmit publishes EventType with Payload to the run's listeners.
	EffectEmit EffectType = "emit"
	// EffectRewriteCall replaces the arguments of the event's call by Arguments, at
	// tool_gate and before_tool_execute. They must fit the tool's schema. The gate judges
	// the call again with them: its hooks get another event, with RewrittenBy, and only
	// their decisions count.
	EffectRewriteCall EffectType = "rewrite_call"
	// EffectReplaceResponse replaces content and tool calls of the model's answer by those
	// of Message, at after_inference. The original stays in the log.
	EffectReplaceResponse EffectType = "replace_response"
	// EffectReplaceResult replaces status, content, data and message of the call's result
	// by those of Result, at after_tool_execute.
	EffectReplaceResult EffectType = "replace_result"
	// EffectVetoCompaction keeps the compaction from starting, for the reason in Detail, at
	// before_compaction.
	EffectVetoCompaction EffectType = "veto_compaction"
	// EffectFocusCompaction asks the summarizer to keep Focus in view, at
	// before_compaction.
	EffectFocusCompaction EffectType = "focus_compaction"
	// EffectNotify leaves a notification of EventType with Payload for the plugins of the
	// thread: a [Notice] of kind custom with the TaskID "plugin/<name>", at the next
	// step_start, of this run or of the thread's next one. It starts no step and no run,
	// and is not shown to the model.
	EffectNotify EffectType = "notify"
	// EffectCustom asks the plugin that declares Key among its effects to execute
	// it with Payload, after the commit.
	EffectCustom EffectType = "custom"
)

// Effect is one thing that a hook wants done. Which fields are read follows
// from Type.
type Effect struct {
	Type      EffectType         `json:"type"`
	MessageID string             `json:"message_id,omitempty"`
	Messages  []Message          `json:"messages,omitempty"`
	Content   []ContentBlock     `json:"content,omitempty"`
	Text      string             `json:"text,omitempty"`
	Context   *ContextMessage    `json:"context,omitempty"`
	Tools     []string           `json:"tools,omitempty"`
	Override  *InferenceOverride `json:"override,omitempty"`
	Code      string             `json:"code,omitempty"`
	Detail    string             `json:"detail,omitempty"`
	Focus     string             `json:"focus,omitempty"`
	EventType string             `json:"event_type,omitempty"`
	Key       string             `json:"key,omitempty"`
	Payload   any                `json:"payload,omitempty"`
	Arguments any                `json:"arguments,omitempty"`
	Message   *Message           `json:"message,omitempty"`
	Result    *ToolResult        `json:"result,omitempty"`
	// Note says in a few words why, for the record and the report.
	Note string `json:"note,omitempty"`
}

// ContextTarget is where in a request a context message stands.
type ContextTarget string

// Context targets.
const (
	// TargetSystem stands right after the system prompt.
	TargetSystem ContextTarget = "system"
	// TargetSession stands after the leading system messages.
	TargetSession ContextTarget = "session"
	// TargetConversation stands after those of TargetSession.
	TargetConversation ContextTarget = "conversation"
	// TargetSuffixSystem stands at the end.
	TargetSuffixSystem ContextTarget = "suffix_system"
)

// ContextMessage is a message that is part of requests, not of the conversation.
type ContextMessage struct {
	Key     string         `json:"key"`
	Role    Role           `json:"role,omitempty"`
	Content []ContentBlock `json:"content,omitempty"`
	Target  ContextTarget  `json:"target,omitempty"`
	// CooldownTurns is the least number of steps between two insertions of the
	// same content under the same key.
	CooldownTurns int `json:"cooldown_turns,omitempty"`
	// Persistent messages stay for later requests of the run.
	Persistent bool `json:"persistent,omitempty"`
	Priority   int  `json:"priority,omitempty"`
}

// InferenceOverride changes a request to the model. Nil fields change nothing.
type InferenceOverride struct {
	Model           *string  `json:"model,omitempty"`
	FallbackModels  []string `json:"fallback_models,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty"`
	MaxTokens       *int64   `json:"max_tokens,omitempty"`
	ReasoningEffort *string  `json:"reasoning_effort,omitempty"`
}

// GateAction is a decision about a tool call.
type GateAction string

// Gate actions. Block wins over suspend, suspend over set_result, set_result
// over allow.
const (
	GateAllow     GateAction = "allow"
	GateBlock     GateAction = "block"
	GateSuspend   GateAction = "suspend"
	GateSetResult GateAction = "set_result"
)

// GateDecision answers the tool gate.
type GateDecision struct {
	Action GateAction `json:"action"`
	// Reason is recorded. The model reads it in other agents; a run of Mortise ends with a block.
	Reason string `json:"reason,omitempty"`
	// Ticket belongs to suspend.
	Ticket *SuspendTicket `json:"ticket,omitempty"`
	// Result belongs to set_result.
	Result *ToolResult `json:"result,omitempty"`
}

// ResumeMode decides what happens to a suspended call when its decision arrives.
type ResumeMode string

// Resume modes.
const (
	// ResumeReplay runs the call. It is the default.
	ResumeReplay ResumeMode = "replay_tool_call"
	// ResumeUseDecision takes the decision as the call's result.
	ResumeUseDecision ResumeMode = "use_decision_as_tool_result"
	// ResumePassDecision runs the call with the decision in its context.
	ResumePassDecision ResumeMode = "pass_decision_to_tool"
)

// SuspendTicket describes what a suspended call waits for.
type SuspendTicket struct {
	ID      string     `json:"id"`
	Action  string     `json:"action,omitempty"`
	Message string     `json:"message,omitempty"`
	Mode    ResumeMode `json:"mode,omitempty"`
	// Parameters and ResponseSchema (a JSON Schema) are for the decider.
	Parameters     any `json:"parameters,omitempty"`
	ResponseSchema any `json:"response_schema,omitempty"`
}
