package transcript

import (
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Format is the kind of recording that a file turned out to be.
type Format string

// Formats that are understood.
const (
	FormatPi           Format = "pi"
	FormatClaudeCode   Format = "claude_code"
	FormatOpenAI       Format = "openai"
	FormatAnthropic    Format = "anthropic"
	FormatAISDK        Format = "ai_sdk"
	FormatAISDKUI      Format = "ai_sdk_ui"
	FormatBedrock      Format = "bedrock_converse"
	FormatResponses    Format = "openai_responses"
	FormatCodex        Format = "codex"
	FormatGemini       Format = "gemini"
	FormatGeminiCLI    Format = "gemini_cli"
	FormatOpenCode     Format = "opencode"
	FormatOpenHands    Format = "openhands"
	FormatGoose        Format = "goose"
	FormatSWEAgent     Format = "swe_agent"
	FormatMiniSWEAgent Format = "mini_swe_agent"
	FormatTauBench     Format = "tau_bench"
	FormatBFCLMemory   Format = "bfcl_memory"
	FormatQMSum        Format = "qmsum"
)

// File is what a recording holds.
type File struct {
	Format Format
	// Conversations are in the order of the file and have at least one message
	// each. There is at least one.
	Conversations []Conversation
	// Skipped counts what was left out, by kind. At most 64 kinds are
	// distinguished, the rest is counted as "other".
	Skipped map[string]int
	// Broken lists the lines that were left out because of [Options.Lenient].
	Broken []LineError
}

// Conversation is one recorded thread.
type Conversation struct {
	// ID is the recorded one where there is one, else c0001 and so on. Unique in
	// its file.
	ID    string
	Title string
	// Entries are the messages in order. Message ids are the recorded ones where
	// there are any, else m000001 and so on; unique in the conversation. So are
	// the ids of tool calls.
	Entries []Entry
	// Partial reports that the recording begins in the middle: its first entry
	// refers to one that is not in the file, or is the summary of what came before.
	Partial bool
	// Compactions are those that were made while it was recorded, in order.
	Compactions []Compaction
	// Notes list what was repaired, in the order of the file.
	Notes []Note
}

// Messages returns the messages alone. They share memory with the entries.
func (c *Conversation) Messages() []abi.Message {
	ms := make([]abi.Message, len(c.Entries))
	for i := range c.Entries {
		ms[i] = c.Entries[i].Message
	}
	return ms
}

// Entry is a message and what was recorded about it.
type Entry struct {
	Message abi.Message
	// ToolName and Status belong to tool messages.
	ToolName string
	Status   abi.ToolStatus
	// Model, StopReason and Usage belong to assistant messages. StopReason is
	// empty when it was not recorded or has no equal here.
	Model      string
	StopReason abi.StopReason
	Usage      *abi.Usage
	// Line is where the message stands, from 1.
	Line int
	// At is when it was recorded; zero when that is not known.
	At time.Time
	// Synthetic messages are not in the recording: they answer a tool call whose
	// result is missing.
	Synthetic bool
}

// Note is one repair.
type Note struct {
	// Line is where the trouble stands, from 1.
	Line int
	// What is one phrase for people.
	What string
}
