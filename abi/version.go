package abi

// Version is the newest version of the contract that this package describes.
const Version = 1

// MinVersion is the oldest version that a host built from this package speaks.
const MinVersion = 1

// Exports that a guest may offer. Each takes no parameters and returns an i32:
// 0 is success, anything else is an error whose text was given to error_set.
// Input and output go through the imports of [ModuleEnv].
const (
	// ExportDescribe returns a [Description]. It is required, unless the custom
	// section [ManifestSection] holds the same bytes.
	ExportDescribe = "describe"
	// ExportOnPhase takes an [Event] and returns a [Reply].
	ExportOnPhase = "on_phase"
	// ExportCallTool takes a [ToolRequest] and returns a [ToolReply].
	ExportCallTool = "call_tool"
	// ExportSummarize takes a [SummarizeRequest] and returns a [Summary].
	ExportSummarize = "summarize"
	// ExportAdmit takes an [AdmitRequest] and returns a [Decision].
	ExportAdmit = "admit"
	// ExportValidate takes a [ValidateRequest] and returns a [Validation]. It is optional: a
	// host calls it when a config is loaded, for what a JSON Schema cannot express.
	ExportValidate = "validate"
)

// ManifestSection names the custom section that may hold an encoded
// [Description], so that a module can be described without running it.
const ManifestSection = "mortise"

// Import modules that a host offers.
const (
	// ModuleEnv is the import module of the Extism convention
	// (https://extism.org/docs/concepts/pdk): memory blocks, input, output, error, log.
	ModuleEnv = "extism:host/env"
	// ModuleHost holds optional imports. Two copy in bulk:
	// input_read(ptr i32) copies the whole input to guest memory at ptr, and
	// output_write(ptr i32, len i32) sets the output from guest memory.
	ModuleHost = "mortise:host/1"
	// ImportInputRead is the name of the bulk read in [ModuleHost].
	ImportInputRead = "input_read"
	// ImportOutputWrite is the name of the bulk write in [ModuleHost].
	ImportOutputWrite = "output_write"
	// ImportMessagesGet is a further optional import of [ModuleHost], for on_phase and call_tool:
	// messages_get(from i32, to i32) -> i64 returns the offset of a memory block
	// that holds an encoded [Event] with the messages from from (included) to to
	// (excluded) of the conversation, and nothing else. A hook asks for a small
	// [View] and reads more only when it needs to. Indices beyond the conversation
	// are cut; 0 means that there is no conversation.
	ImportMessagesGet = "messages_get"
	// ImportMessagesRead is a further optional import of [ModuleHost], for on_phase with
	// [Hook.LazyMessages]: messages_read(from i32, to i32, ptr i32, len i32) -> i64 copies
	// the encodings of the event's messages from from (included) to to (excluded), counted
	// from 0, to guest memory at ptr, one behind the other. It returns how many bytes they are,
	// which the index says, too; when these are more than len it copies nothing. It
	// returns -1 when not all of them are there, as in a call that has none. Memory that is
	// not there ends the call.
	ImportMessagesRead = "messages_read"
)

// VersionRange is the range of contract versions that a guest speaks, both ends
// included. The host picks the highest version that both sides know.
type VersionRange struct {
	Min int `json:"min"`
	Max int `json:"max"`
}
