package compaction

import (
	"fmt"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

// minPart is the least that a part may hold, in estimated tokens.
const minPart = 256

// parts cuts a range into what the summarizer takes at a time, besides the summary
// of what comes before.
func (c *Compactor) parts(r *abi.SummarizeRequest, bill calibration) [][]abi.Message {
	previous := r.BudgetTokens
	if r.PreviousSummary != nil {
		previous = max(previous, textTokens(*r.PreviousSummary))
	}
	most := c.conf().Policy.SummarizerTokens
	if bill.factor > 0 {
		most = int64(float64(most) / bill.factor)
	}
	most = max(most-previous, minPart)
	if Estimate(r.Messages) <= most {
		return [][]abi.Message{r.Messages}
	}
	return split(r.Messages, most)
}

// split cuts messages into parts of at most so many tokens: between rounds, within
// a round that is larger, and within a message that is larger than a part.
func split(messages []abi.Message, most int64) [][]abi.Message {
	var out [][]abi.Message
	var part []abi.Message
	size := int64(0)
	add := func(piece []abi.Message, tokens int64) {
		if size+tokens > most && len(part) > 0 {
			out, part, size = append(out, part), nil, 0
		}
		part, size = append(part, piece...), size+tokens
	}
	x := unweighed(messages)
	for i := 0; i < len(messages); {
		end := x.roundEnd(i)
		round := messages[i:end]
		i = end
		if n := Estimate(round); n <= most {
			add(round, n)
			continue
		}
		for j := range round {
			for _, piece := range pieces(round[j], most) {
				add([]abi.Message{piece}, EstimateMessage(&piece))
			}
		}
	}
	if len(part) > 0 {
		out = append(out, part)
	}
	return out
}

// pieces cuts a message that is larger than a part. The arguments of its calls
// become text, since they may be what is large.
func pieces(m abi.Message, most int64) []abi.Message {
	tokens := EstimateMessage(&m)
	if tokens <= most {
		return []abi.Message{m}
	}
	var out []abi.Message
	text := func(s string) {
		for s != "" {
			// Text is denser in places: a quarter is left for that.
			n := int(int64(len(s)) * most * 3 / 4 / max(textTokens(s), 1))
			head := cut(s, max(n, utf8.UTFMax))
			s = s[len(head):]
			piece := m
			piece.ToolCalls, piece.Content = nil, []abi.ContentBlock{abi.Text(head)}
			out = append(out, piece)
		}
	}
	for i := range m.Content {
		if b := m.Content[i]; b.Type == abi.BlockText || b.Type == abi.BlockThinking {
			text(b.Text)
			continue
		}
		piece := m
		piece.ToolCalls, piece.Content = nil, m.Content[i:i+1]
		out = append(out, piece)
	}
	for _, c := range m.ToolCalls {
		text(fmt.Sprintf("[call of %s] %s", c.Name, argumentText(c.Arguments)))
	}
	return out
}

// cut is the beginning of a text, of at most n bytes and whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range utf8.UTFMax {
		if n > i && utf8.RuneStart(s[n-i]) {
			return s[:n-i]
		}
	}
	return s[:n]
}
