package abi

// Description is what a guest says of itself.
type Description struct {
	// Name matches ^[a-z0-9][a-z0-9._-]{0,63}$.
	Name    string `json:"name"`
	Version string `json:"version"`
	// ABI is the range of contract versions that the guest speaks.
	ABI VersionRange `json:"abi"`
	// Summary is one line for lists and reports.
	Summary string `json:"summary,omitempty"`
	Hooks   []Hook `json:"hooks,omitempty"`
	// Tools that the guest answers in call_tool.
	Tools []Tool `json:"tools,omitempty"`
	// State keys that the guest owns. An update of any other key is refused.
	State []StateKey `json:"state,omitempty"`
	// Actions are those that the guest executes when they were scheduled, Effects
	// those that it executes after a commit. Both come to [ExportOnPhase].
	Actions []Handler `json:"actions,omitempty"`
	Effects []Handler `json:"effects,omitempty"`
	// Capabilities that the guest asks for. The operator grants them.
	Capabilities []Capability `json:"capabilities,omitempty"`
	// Policies are the names that a summarizer or admission module knows.
	Policies []string `json:"policies,omitempty"`
	// LedgerPolicies are those of them that read the ledger alone: a request with a ledger has no messages for them.
	LedgerPolicies []string `json:"ledger_policies,omitempty"`
	// ConfigSchema is a JSON Schema of the guest's config.
	ConfigSchema any `json:"config_schema,omitempty"`
}

// Hook subscribes a guest to a phase.
type Hook struct {
	Phase Phase `json:"phase"`
	Mode  Mode  `json:"mode"`
	// Messages is what the hook wants to see, none by default.
	Messages View `json:"messages,omitempty"`
	// Window is the n of [ViewWindow].
	Window int `json:"window,omitempty"`
	// LazyMessages leaves the messages in the host: the event has their index, see
	// [FieldMessageIndex], and the hook reads those that it wants with
	// [ImportMessagesRead]. A guest that asks for it must still take an event with messages:
	// it gets one from a host that knows no better. It is for MessagePack.
	LazyMessages bool `json:"lazy_messages,omitempty"`
	// Include lists what else the event should hold, which is sent to no hook that does
	// not ask for it.
	Include []string `json:"include,omitempty"`
	// Priority orders hooks of one phase: lower is earlier, 0 is the middle.
	Priority int `json:"priority,omitempty"`
	// Before and After name plugins that this hook must precede or follow.
	Before    []string      `json:"before,omitempty"`
	After     []string      `json:"after,omitempty"`
	OnFailure FailurePolicy `json:"on_failure,omitempty"`
}

// What a hook may list in [Hook.Include].
const (
	// IncludeRequest asks for [Event.Request] at before_inference, without the system
	// prompt.
	IncludeRequest = "request"
	// IncludeSystem asks for the system prompt in [Event.Request], too.
	IncludeSystem = "system"
)

// Scope is how long a state value lives.
type Scope string

// Scopes.
const (
	// ScopeRun ends with the run.
	ScopeRun Scope = "run"
	// ScopeThread lasts as long as the conversation.
	ScopeThread Scope = "thread"
)

// Merge reports whether several hooks of one phase may update a key.
type Merge string

// Merge strategies.
const (
	// MergeExclusive lets one hook at a time update the key; the others run
	// again on what it wrote. It is the default.
	MergeExclusive Merge = "exclusive"
	// MergeCommutative lets all of them update it, with commutative operations.
	MergeCommutative Merge = "commutative"
)

// StateKey declares a state value.
type StateKey struct {
	// Name is prefixed by the host with the plugin's name and a slash.
	Name  string `json:"name"`
	Scope Scope  `json:"scope,omitempty"`
	Merge Merge  `json:"merge,omitempty"`
}

// Handler declares an action or an effect that a plugin executes.
type Handler struct {
	// Name is prefixed by the host with the plugin's name and a slash.
	Name string `json:"name"`
	// Mode limits what the reply to an action may hold, observe by default. The reply
	// to an effect holds nothing.
	Mode Mode `json:"mode,omitempty"`
	// Public lets other plugins ask for it, under its full name.
	Public bool `json:"public,omitempty"`
	// OnFailure is ignore by default. What failed is kept as a dead letter.
	OnFailure FailurePolicy `json:"on_failure,omitempty"`
}

// Capability names.
const (
	CapabilityHTTP    = "http"
	CapabilityKV      = "kv"
	CapabilityConfig  = "config"
	CapabilitySecrets = "secrets"
	CapabilityClock   = "clock"
	CapabilityRandom  = "random"
	CapabilityFS      = "fs"
	CapabilityLog     = "log"
	CapabilityModel   = "model"
	// CapabilitySticky asks for one instance for the phases of each run, which keeps its memory
	// from one to the next. It may be a new one at any of them, so what counts is kept in state.
	CapabilitySticky = "sticky"
)

// Capability is something that a guest asks for.
type Capability struct {
	Name string `json:"name"`
	// Reason is one sentence for the operator.
	Reason string `json:"reason,omitempty"`
	// Scope lists hosts, paths, key prefixes, names of secrets or model roles, by Name.
	Scope []string `json:"scope,omitempty"`
	// Optional means that the guest does its work without it, too. Else a host refuses
	// to load the guest when it is not granted.
	Optional bool `json:"optional,omitempty"`
}

// ValidateRequest is the input of validate: a config that fits the guest's schema.
type ValidateRequest struct {
	ABI    int `json:"abi"`
	Config any `json:"config,omitempty"`
}

// Validation is what validate returns. A config without problems is accepted.
type Validation struct {
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one thing that is wrong with a config.
type Problem struct {
	// Path is a JSON Pointer into the config, empty for the whole.
	Path string `json:"path,omitempty"`
	// Message is one sentence that names the value and what to write instead.
	Message string `json:"message"`
}
