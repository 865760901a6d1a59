package abi

// Role is who a message is from.
type Role string

// Roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Visibility selects whom a message is for. The empty string means everyone.
type Visibility string

// VisibilityInternal marks a message that the runtime wrote for the model and
// that a user interface does not show.
const VisibilityInternal Visibility = "internal"

// MetadataOriginal is a reserved field of [Message.Metadata]: of an assistant message in a
// stored log that a plugin replaced it holds what the model had written, as content and
// tool_calls, and the plugins as replaced_by. It is in no message that a model or a plugin
// gets.
const MetadataOriginal = "mortise_original"

// MetadataIsError is true in [Message.Metadata] of a tool message whose call failed. It is sent
// to providers that have such a mark.
const MetadataIsError = "is_error"

// Message is one entry of a conversation.
type Message struct {
	// ID is unique in its thread and never changes.
	ID      string         `json:"id,omitempty"`
	Role    Role           `json:"role"`
	Content []ContentBlock `json:"content,omitempty"`
	// ToolCalls are the calls that an assistant message asks for.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID links a tool message to the call that it answers.
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Visibility Visibility `json:"visibility,omitempty"`
	// Pinned messages survive every compaction word for word.
	Pinned   bool           `json:"pinned,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// Text returns the text blocks of the message, joined without a separator.
func (m *Message) Text() string {
	if len(m.Content) == 1 && m.Content[0].Type == BlockText {
		return m.Content[0].Text
	}
	n := 0
	for i := range m.Content {
		if m.Content[i].Type == BlockText {
			n += len(m.Content[i].Text)
		}
	}
	buf := make([]byte, 0, n)
	for i := range m.Content {
		if m.Content[i].Type == BlockText {
			buf = append(buf, m.Content[i].Text...)
		}
	}
	return string(buf)
}

// BlockType is the kind of a content block.
type BlockType string

// Kinds of content blocks.
const (
	BlockText     BlockType = "text"
	BlockThinking BlockType = "thinking"
	BlockImage    BlockType = "image"
	BlockDocument BlockType = "document"
	BlockAudio    BlockType = "audio"
	BlockVideo    BlockType = "video"
)

// ContentBlock is one part of a message: text, thinking, or a reference to
// media. Which fields are set follows from Type.
type ContentBlock struct {
	Type BlockType `json:"type"`
	// Text of a text or thinking block.
	Text string `json:"text,omitempty"`
	// Signature that a provider put on a thinking block; sent back unchanged.
	Signature string `json:"signature,omitempty"`
	// MediaType, URL, Data (base64) and Title belong to media blocks.
	MediaType string `json:"media_type,omitempty"`
	URL       string `json:"url,omitempty"`
	Data      string `json:"data,omitempty"`
	Title     string `json:"title,omitempty"`
}

// Text returns a text block.
func Text(s string) ContentBlock { return ContentBlock{Type: BlockText, Text: s} }

// Tool describes a tool to the model.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is a JSON Schema.
	Parameters any `json:"parameters,omitempty"`
	// Kind is what the tool does, for policies. See [ToolKind].
	Kind ToolKind `json:"kind,omitempty"`
}

// ToolKind is what a tool does, as declared by the tool.
type ToolKind string

// Kinds of tools. A tool that declares none is [ToolOther].
const (
	ToolRead    ToolKind = "read"
	ToolSearch  ToolKind = "search"
	ToolEdit    ToolKind = "edit"
	ToolExecute ToolKind = "execute"
	ToolOther   ToolKind = "other"
)

// ToolCall asks for one execution of a tool.
type ToolCall struct {
	ID   string   `json:"id"`
	Name string   `json:"name"`
	Kind ToolKind `json:"kind,omitempty"`
	// Arguments as decoded from the model's JSON. Arguments that are not valid
	// JSON arrive as the string that the model wrote.
	Arguments any `json:"arguments,omitempty"`
	// IdempotencyKey is set by the host in events and for call_tool. It is the same when the
	// same execution is asked for once more, as after a crash, and else nowhere again.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Resume is set by the host when the call was suspended and a decision came.
	Resume *Resume `json:"resume,omitempty"`
}

// ToolRequest is the input of call_tool: a call, and what the plugin may know of the run
// that asks. Its first fields are those of [ToolCall].
type ToolRequest struct {
	ID             string   `json:"id"`
	Name           string   `json:"name"`
	Kind           ToolKind `json:"kind,omitempty"`
	Arguments      any      `json:"arguments,omitempty"`
	IdempotencyKey string   `json:"idempotency_key,omitempty"`
	Resume         *Resume  `json:"resume,omitempty"`
	// ABI is the contract version that host and guest agreed on.
	ABI int         `json:"abi,omitempty"`
	Run RunIdentity `json:"run"`
	// NowMS is the host's time in milliseconds since 1970.
	NowMS int64 `json:"now_ms,omitempty"`
	Step  int   `json:"step,omitempty"`
	// State holds the values of the plugin's own keys when the call began, without the
	// name prefix.
	State map[string]any `json:"state,omitempty"`
	// MessagesTotal is the length of the conversation, which the plugin reads with
	// [ImportMessagesGet].
	MessagesTotal int `json:"messages_total,omitempty"`
	Config        any `json:"config,omitempty"`
}

// Resume is what was decided about a suspended call.
type Resume struct {
	// TicketID is that of the suspension, Reason why it was made.
	TicketID string `json:"ticket_id"`
	Reason   string `json:"reason,omitempty"`
	// DecisionID is that of the decision, Result what was decided and Note the words
	// of the decider.
	DecisionID string `json:"decision_id,omitempty"`
	Result     any    `json:"result,omitempty"`
	Note       string `json:"note,omitempty"`
}

// ToolStatus is how a tool execution ended.
type ToolStatus string

// Tool statuses.
const (
	ToolSuccess ToolStatus = "success"
	ToolError   ToolStatus = "error"
	// ToolPending means that the call is suspended until a decision arrives.
	ToolPending ToolStatus = "pending"
)

// ToolResult is what a tool answered.
type ToolResult struct {
	CallID   string     `json:"call_id,omitempty"`
	ToolName string     `json:"tool_name,omitempty"`
	Status   ToolStatus `json:"status"`
	// Content is what the model reads. When empty, Message or Data is rendered.
	Content []ContentBlock `json:"content,omitempty"`
	Data    any            `json:"data,omitempty"`
	Message string         `json:"message,omitempty"`
	// Ticket belongs to pending: what the call waits for. Nil means a ticket
	// with the id of the call.
	Ticket *SuspendTicket `json:"ticket,omitempty"`
}

// ToolReply is what call_tool returns: a result, and what the plugin wants done beyond it.
// Its first fields are those of [ToolResult].
type ToolReply struct {
	Status  ToolStatus     `json:"status"`
	Content []ContentBlock `json:"content,omitempty"`
	Data    any            `json:"data,omitempty"`
	Message string         `json:"message,omitempty"`
	Ticket  *SuspendTicket `json:"ticket,omitempty"`
	// Updates and Effects are applied before the hooks at after_tool_execute get the result,
	// as those of a transform hook of the plugin at that phase, all or none of them. When
	// they are refused the model reads why instead of the result.
	Updates []Update `json:"updates,omitempty"`
	Effects []Effect `json:"effects,omitempty"`
}

// Usage counts tokens as billed by a provider. Zero means unknown.
type Usage struct {
	PromptTokens        int64 `json:"prompt_tokens,omitempty"`
	CompletionTokens    int64 `json:"completion_tokens,omitempty"`
	TotalTokens         int64 `json:"total_tokens,omitempty"`
	CacheReadTokens     int64 `json:"cache_read_tokens,omitempty"`
	CacheCreationTokens int64 `json:"cache_creation_tokens,omitempty"`
	ThinkingTokens      int64 `json:"thinking_tokens,omitempty"`
}

// Response is what a model answered.
type Response struct {
	Model      string     `json:"model,omitempty"`
	Message    Message    `json:"message"`
	StopReason StopReason `json:"stop_reason,omitempty"`
	Usage      *Usage     `json:"usage,omitempty"`
	// Error is set instead of Message when the inference failed.
	Error string `json:"error,omitempty"`
}

// StopReason is why a model stopped.
type StopReason string

// Stop reasons.
const (
	StopEndTurn   StopReason = "end_turn"
	StopToolUse   StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
)
