package phases

import "github.com/mortise-dev/mortise/abi"

// Frame is the moment of a run at which a phase fires. Nothing in it is changed,
// and hooks share it: the caller must not change it either while Fire runs, nor
// its messages ever, because an abandoned hook may still read them.
type Frame struct {
	Phase abi.Phase
	Run   abi.RunIdentity
	// Step counts from 1; 0 at run_start.
	Step int
	// Messages are what the model sees. Each has an id, unique among them.
	Messages []abi.Message
	// Response is set at after_inference.
	Response *abi.Response
	// Call is set at the tool phases.
	Call *abi.ToolCall
	// Result is set at after_tool_execute. ResultMessageID is the id of the tool
	// message that will carry it; the message need not be in Messages yet.
	Result          *abi.ToolResult
	ResultMessageID string
	// Notices arrived since the previous step.
	Notices []abi.Notice
	// Compaction is set at the phases around one.
	Compaction *abi.Compaction
	// RewrittenBy are the plugins that changed the arguments of Call before this phase.
	RewrittenBy []string
	// End is set at run_end.
	End *abi.RunEnding
	// Request makes what the model is about to be asked, with the system prompt, at
	// before_inference. It is called only when a hook includes it, and once.
	Request func() *abi.InferenceRequest `json:"-"`
	// CheckArguments returns what is wrong with arguments of Call, by the schema of its
	// tool. Nil takes any.
	CheckArguments func(arguments any) error `json:"-"`
	// HasTool reports whether there is a tool of that name. Nil is for a caller that does
	// not know its tools.
	HasTool func(name string) bool `json:"-"`
	// Waiting counts the notifications of plugins that the thread has not received yet.
	Waiting int
}

// Outcome is what the hooks of a phase came to. It is the caller's to execute;
// only state is already committed.
type Outcome struct {
	// Messages are those of the frame after the effects: the same slice when
	// nothing changed, otherwise a copy.
	Messages []abi.Message
	// Edits are the changes of single messages, in the order of application.
	Edits []Edit
	// Appended are the messages added at the end. Each has a fresh id, whatever
	// the plugin gave, and the plugin's name in Metadata[MetadataBy].
	Appended []abi.Message
	// Context messages for the next request. Their keys are prefixed with the
	// plugin's name and a slash; of one key the last one stays. An empty role is
	// set to system, an empty target to system.
	Context []abi.ContextMessage
	// ExcludeTools is sorted and without duplicates. IncludeTools holds one list
	// for each effect; an empty list allows no tool.
	ExcludeTools []string
	IncludeTools [][]string
	// Override merges all overrides field by field; the later hook wins.
	Override *abi.InferenceOverride
	// Stop is that of the first hook in firing order that asked for one.
	Stop *Stop
	// Compact is the first request that has a focus, or else the first.
	Compact *CompactionRequest
	Emitted []Emitted
	// Veto is that of the first hook in firing order that keeps the compaction from
	// starting. Focus is what all hooks asked to keep in view, one per line, in firing
	// order. Both are set at before_compaction only.
	Veto  *Veto
	Focus string
	// Gate is what the tool gate decided. Nil is no opinion.
	Gate *GateOutcome
	// Rewrite holds other arguments of Frame.Call. The gate has judged the call before
	// that: [Runtime.Recheck] has it judge again.
	Rewrite *Rewrite
	// Response replaces that of the frame, nil when it stays. Its calls that are new have
	// fresh ids. ReplacedBy are the plugins that changed it.
	Response   *abi.Response
	ReplacedBy []string
	// Result replaces that of the frame, nil when it stays. Its message is among Edits.
	Result *abi.ToolResult
	// Notifications are for the inbox of the thread.
	Notifications []abi.Notice
	// Report counts actions and custom effects; they are already executed.
	Report Report
}

// MetadataBy is the metadata field of an appended message that holds the name
// of the plugin.
const MetadataBy = "by"

// EditKind is what an edit does to a message.
type EditKind string

// Kinds of edits.
const (
	EditReplace EditKind = "replace"
	EditMask    EditKind = "mask"
	EditPin     EditKind = "pin"
)

// Edit is a change of one message. The message may be that of
// Frame.ResultMessageID; its content before the change is Result.Content.
type Edit struct {
	MessageID string
	Kind      EditKind
	// Message is how it is after the edit.
	Message abi.Message
	By      string
	Note    string
}

// Stop asks to end the run.
type Stop struct {
	Code   string
	Detail string
	By     string
}

// CompactionRequest asks for a compaction.
type CompactionRequest struct {
	Focus string
	By    string
}

// Rewrite holds the arguments of a call that plugins changed.
type Rewrite struct {
	Arguments any
	// By are the plugins, in the order in which they changed them.
	By []string
}

// Veto keeps a compaction from starting.
type Veto struct {
	Detail string
	By     string
}

// Emitted is an event for the listeners of the run.
type Emitted struct {
	EventType string
	Payload   any
	By        string
}

// GateOutcome is the decision about a tool call: block wins over suspend, suspend
// over set_result, set_result over allow, and among equals the first hook in
// firing order.
type GateOutcome struct {
	Decision abi.GateDecision
	By       string
}
