package anthropic

import (
	"cmp"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// response converts a message, by the same deltas as a stream.
func (q *request) response(m *sdk.Message) (*abi.Response, error) {
	return llm.Collect(func(emit func(llm.Delta) bool) error {
		deltas := q.deltas(m.Content)
		deltas = append(deltas, llm.Delta{Type: llm.DeltaUsage, Usage: usage(&m.Usage)}, llm.Delta{Type: llm.DeltaStop, Stop: stopReason(m.StopReason), Name: m.Model})
		for _, d := range deltas {
			if !emit(d) {
				return errUnwanted
			}
		}
		return nil
	})
}

// deltas returns the deltas of whole blocks. Blocks of server-side tools, which no request offers, are ignored.
func (q *request) deltas(blocks []sdk.ContentBlockUnion) []llm.Delta {
	var out []llm.Delta
	calls := 0
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case "text":
			out = append(out, llm.Delta{Type: llm.DeltaText, Text: b.Text})
		case "thinking":
			out = append(out, llm.Delta{Type: llm.DeltaReasoning, Text: b.Thinking})
			if b.Signature != "" {
				out = append(out, llm.Delta{Type: llm.DeltaSignature, Text: signed(b.Signature, calls)})
			}
		case "redacted_thinking":
			out = append(out, llm.Delta{Type: llm.DeltaSignature, Text: signed(redactedPrefix+b.Data, calls)})
		case "tool_use":
			calls++
			out = append(out,
				llm.Delta{Type: llm.DeltaCallStart, CallID: b.ID, Name: q.name(b.Name)},
				llm.Delta{Type: llm.DeltaCallArguments, CallID: b.ID, Text: string(b.Input)})
		}
		out = append(out, llm.Delta{Type: llm.DeltaBlockStop})
	}
	return out
}

// name returns the tool's own name.
func (q *request) name(s string) string { return cmp.Or(q.names[s], s) }

// stopReason converts a stop reason. A paused turn and a full context window count as cut at the output limit.
func stopReason(r sdk.StopReason) abi.StopReason {
	switch r {
	case sdk.StopReasonToolUse:
		return abi.StopToolUse
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded, sdk.StopReasonPauseTurn:
		return abi.StopMaxTokens
	default:
		return abi.StopEndTurn
	}
}

// usage converts the bill. The API counts cache reads and writes separately from the other input tokens.
func usage(u *sdk.Usage) *abi.Usage {
	out := &abi.Usage{
		PromptTokens:        u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
		CompletionTokens:    u.OutputTokens,
		CacheReadTokens:     u.CacheReadInputTokens,
		CacheCreationTokens: u.CacheCreationInputTokens,
		ThinkingTokens:      u.OutputTokensDetails.ThinkingTokens,
	}
	out.TotalTokens = out.PromptTokens + out.CompletionTokens
	return out
}
