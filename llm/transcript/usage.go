package transcript

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// maxTokens bounds recorded counts, so that sums over a file cannot overflow.
const maxTokens = 1 << 40

// tokens is a count; what is not a number, or negative, is 0.
type tokens int64

// UnmarshalJSON never fails.
func (t *tokens) UnmarshalJSON(data []byte) error {
	*t = 0
	if f, err := strconv.ParseFloat(string(data), 64); err == nil && f > 0 {
		*t = tokens(min(f, maxTokens))
	}
	return nil
}

// recordedUsage is the union of the usage objects of all formats.
type recordedUsage struct {
	// pi
	Input       tokens
	Output      tokens
	CacheRead   tokens
	CacheWrite  tokens
	TotalTokens tokens
	// Anthropic
	InputTokens   tokens `json:"input_tokens"`
	OutputTokens  tokens `json:"output_tokens"`
	CacheReadIn   tokens `json:"cache_read_input_tokens"`
	CacheCreation tokens `json:"cache_creation_input_tokens"`
	// OpenAI
	PromptTokens     tokens `json:"prompt_tokens"`
	CompletionTokens tokens `json:"completion_tokens"`
	Total            tokens `json:"total_tokens"`
	PromptDetails    struct {
		Cached tokens `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning tokens `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// parseUsage returns nil when nothing was counted. OpenAI's prompt_tokens hold
// the cached ones already; for the others they are added.
func parseUsage(raw json.RawMessage) *abi.Usage {
	var r recordedUsage
	if first(raw) != '{' || json.Unmarshal(raw, &r) != nil {
		return nil
	}
	read, written := r.CacheRead+r.CacheReadIn, r.CacheWrite+r.CacheCreation
	u := abi.Usage{
		PromptTokens:        int64(r.PromptTokens + r.Input + r.InputTokens + read + written),
		CompletionTokens:    int64(r.CompletionTokens + r.Output + r.OutputTokens),
		TotalTokens:         int64(max(r.Total, r.TotalTokens)),
		CacheReadTokens:     int64(read + r.PromptDetails.Cached),
		CacheCreationTokens: int64(written),
		ThinkingTokens:      int64(r.CompletionDetails.Reasoning),
	}
	if u == (abi.Usage{}) {
		return nil
	}
	if u.TotalTokens == 0 {
		u.TotalTokens = u.PromptTokens + u.CompletionTokens
	}
	return &u
}

// mergeUsage takes the larger of each count: the lines of one answer repeat the
// usage while it grows.
func mergeUsage(a, b *abi.Usage) *abi.Usage {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return &abi.Usage{
		PromptTokens:        max(a.PromptTokens, b.PromptTokens),
		CompletionTokens:    max(a.CompletionTokens, b.CompletionTokens),
		TotalTokens:         max(a.TotalTokens, b.TotalTokens),
		CacheReadTokens:     max(a.CacheReadTokens, b.CacheReadTokens),
		CacheCreationTokens: max(a.CacheCreationTokens, b.CacheCreationTokens),
		ThinkingTokens:      max(a.ThinkingTokens, b.ThinkingTokens),
	}
}

func stopReason(s string) abi.StopReason {
	switch strings.ToLower(s) {
	case "stop", "end_turn", "stop_sequence":
		return abi.StopEndTurn
	case "tool_use", "tooluse", "tool_calls", "function_call":
		return abi.StopToolUse
	case "length", "max_tokens":
		return abi.StopMaxTokens
	}
	return ""
}

// moment reads RFC 3339 text, also without a zone, and seconds or milliseconds
// since 1970; zero for anything else.
func moment(s string) time.Time {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC()
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil && n > 1e11 && n < 1e14:
		return time.UnixMilli(n).UTC()
	case err == nil && n > 1e9 && n < 1e10:
		return time.Unix(n, 0).UTC()
	}
	if t, err := time.Parse("2006-01-02T15:04:05", strings.TrimSpace(s)); err == nil { // Python writes no zone
		return t.UTC()
	}
	return time.Time{}
}
