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

// dropRounds leaves out the oldest rounds until the rest fits, and says so in a
// message behind the leading ones.
func dropRounds(view []abi.Message, total, budget int64) []abi.Message {
	lead := 0
	for lead < len(view) && view[lead].Role == abi.RoleSystem {
		lead++
	}
	note := abi.Message{
		ID: "truncated", Role: abi.RoleSystem, Visibility: abi.VisibilityInternal,
		Content: []abi.ContentBlock{abi.Text("[Older messages are not shown: the context window is full.]")},
	}
	out := append(make([]abi.Message, 0, len(view)+1), view[:lead]...)
	if lead == 0 || out[lead-1].ID != note.ID {
		out = append(out, note)
		total += EstimateMessage(&note)
	}
	x := unweighed(view)
	dropped := false
	for i := lead; i < len(view); {
		end := x.roundEnd(i)
		if total <= budget || end == len(view) || stays(view[i:end]) || (x.user >= i && x.user < end) {
			out = append(out, view[i:end]...)
		} else {
			total -= Estimate(view[i:end])
			dropped = true
		}
		i = end
	}
	if !dropped {
		return view
	}
	return out
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
		// A character has at most three bytes after its first.
		for range utf8.UTFMax - 1 {
			if !utf8.RuneStart(text[head]) {
				head--
			}
			if !utf8.RuneStart(text[tail]) {
				tail++
			}
		}
		var b strings.Builder
		b.WriteString(text[:head])
		fmt.Fprintf(&b, "\n[… %d bytes are not shown: the context window is full …]\n", tail-head)
		b.WriteString(text[tail:])
		out[i].Text = b.String()
	}
	return out
}
