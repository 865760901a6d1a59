package compaction

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

// Lengths that Truncate leaves of a long tool output, in bytes.
const (
	outputHead = 1200
	outputTail = 800
)

// Truncate is the deterministic fallback: it makes a view fit into budget tokens
// without a summarizer. Long tool outputs lose their middle first, oldest first;
// then the oldest rounds go, whole. Leading system messages, pinned messages and
// the latest user message stay, and so does the newest round, even when the
// budget does not hold them. The view itself is not changed.
func Truncate(view []abi.Message, budget int64) []abi.Message {
	total := Estimate(view)
	if total <= budget {
		return view
	}
	out := make([]abi.Message, len(view))
	copy(out, view)
	for i := range out {
		if total <= budget {
			return out
		}
		if out[i].Role == abi.RoleTool && !out[i].Pinned {
			before := EstimateMessage(&out[i])
			out[i].Content = shorten(out[i].Content)
			total -= before - EstimateMessage(&out[i])
		}
	}
	return dropRounds(out, total, budget)
}

// dropRounds leaves out the oldest rounds until the rest fits.
func dropRounds(view []abi.Message, total, budget int64) []abi.Message {
	user := latestUser(view)
	lead := 0
	for lead < len(view) && view[lead].Role == abi.RoleSystem {
		lead++
	}
	out := append([]abi.Message(nil), view[:lead]...)
	dropped := 0
	for i := lead; i < len(view); {
		end := i + 1
		for end < len(view) && view[end].Role == abi.RoleTool {
			end++
		}
		newest := end == len(view)
		if total <= budget || newest || stays(view[i:end]) || (user >= i && user < end) {
			out = append(out, view[i:end]...)
		} else {
			total -= Estimate(view[i:end])
			dropped += end - i
		}
		i = end
	}
	if dropped == 0 {
		return out
	}
	note := abi.Message{
		ID: "truncated", Role: abi.RoleSystem, Visibility: abi.VisibilityInternal,
		Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("[%d older messages are not shown: the context window is full]", dropped))},
	}
	return append(out[:lead:lead], append([]abi.Message{note}, out[lead:]...)...)
}

func stays(messages []abi.Message) bool {
	for i := range messages {
		if messages[i].Pinned {
			return true
		}
	}
	return false
}

// shorten cuts the middle out of long text blocks.
func shorten(content []abi.ContentBlock) []abi.ContentBlock {
	out := make([]abi.ContentBlock, len(content))
	copy(out, content)
	for i := range out {
		text := out[i].Text
		if out[i].Type != abi.BlockText || len(text) <= outputHead+outputTail+100 {
			continue
		}
		head, tail := outputHead, len(text)-outputTail
		for !utf8.RuneStart(text[head]) {
			head--
		}
		for tail < len(text) && !utf8.RuneStart(text[tail]) {
			tail++
		}
		var b strings.Builder
		b.WriteString(text[:head])
		fmt.Fprintf(&b, "\n[… %d bytes are not shown: the context window is full …]\n", tail-head)
		b.WriteString(text[tail:])
		out[i].Text = b.String()
	}
	return out
}
