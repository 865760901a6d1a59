package compaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// leastMasked is the least of an argument that is masked, in bytes.
const leastMasked = 200

// CheckMasks returns why masks cannot be applied to messages: each is of the output of a tool, or of the
// arguments of a call, among the messages, is named once, has a reason, and nothing pinned is masked, nor the
// arguments in a message with signed thoughts, which a provider may check together with them.
func CheckMasks(messages []abi.Message, masks []abi.Mask) error {
	at := places(messages)
	seen := make(map[abi.Mask]bool, len(masks))
	for i := range masks {
		k := &masks[i]
		n, ok := at[k.MessageID]
		id := abi.Mask{MessageID: k.MessageID, CallID: k.CallID}
		switch {
		case !ok:
			return fmt.Errorf("it masks message %.40q, which is not in the range", k.MessageID)
		case seen[id]:
			return fmt.Errorf("it masks message %.40q twice", k.MessageID)
		case messages[n].Pinned:
			return fmt.Errorf("it masks message %.40q, which is pinned", k.MessageID)
		case k.CallID == "" && messages[n].Role != abi.RoleTool:
			return fmt.Errorf("it masks message %.40q, which is not the output of a tool", k.MessageID)
		case k.CallID != "" && callAt(&messages[n], k.CallID) < 0:
			return fmt.Errorf("it masks the call %.40q, which message %.40q does not have", k.CallID, k.MessageID)
		case k.CallID != "" && thought(&messages[n]):
			return fmt.Errorf("it masks the call %.40q in message %.40q, whose thoughts are signed", k.CallID, k.MessageID)
		case maskedBecause(k.Reason, "") == "":
			return fmt.Errorf("it masks message %.40q for the unknown reason %.40q", k.MessageID, k.Reason)
		}
		seen[id] = true
	}
	return nil
}

// Masked returns the messages as the model sees them under masks. A message's number is its place in the
// list, from 1 on. The list is not changed.
func Masked(messages []abi.Message, masks []abi.Mask) []abi.Message {
	return put(messages, masking(messages, masks), inPlace)
}

// inPlace is the place in a view without a summary.
func inPlace(i int) (int, bool) { return i, true }

// put replaces messages of a view; at is where a message of the log is in the view.
func put(view []abi.Message, masked map[int]abi.Message, at func(i int) (int, bool)) []abi.Message {
	if len(masked) == 0 {
		return view
	}
	out := slices.Clone(view)
	for i, m := range masked {
		if n, ok := at(i); ok {
			out[n] = m
		}
	}
	return out
}

// masking returns the messages that masks change, as the model sees them, by their places.
func masking(log []abi.Message, masks []abi.Mask) map[int]abi.Message {
	if len(masks) == 0 {
		return nil
	}
	at, out := places(log), make(map[int]abi.Message, len(masks))
	for i := range masks {
		k := &masks[i]
		n, ok := at[k.MessageID]
		if !ok {
			continue
		}
		m, changed := out[n]
		if !changed {
			m = log[n]
		}
		by := ""
		if j, ok := at[k.By]; ok {
			by = number(j)
		}
		why := maskedBecause(k.Reason, by)
		switch {
		case k.CallID == "" && m.Role == abi.RoleTool:
			m.Content = []abi.ContentBlock{abi.Text(fmt.Sprintf("[masked: %s. The tool recall shows the output, %d bytes, with id %s.]", why, contentBytes(m.Content), number(n)))}
		case k.CallID != "":
			m.ToolCalls = withoutInput(m.ToolCalls, k.CallID, fmt.Sprintf("[masked: %s. The tool recall shows it with id %s.]", why, number(n)))
		}
		out[n] = m
	}
	return out
}

// maskedBecause is a reason in words, empty for an unknown one. By is the number of a message.
func maskedBecause(r abi.MaskReason, by string) string {
	in := ""
	if by != "" {
		in = " in " + by
	}
	switch r {
	case abi.MaskSuperseded:
		return "this was read again" + in
	case abi.MaskDuplicate:
		return "the same output came again" + in
	case abi.MaskInvalidated:
		return "the file was changed after this" + in
	case abi.MaskRefetchable:
		return "the same call can read it again"
	case abi.MaskFailedInput:
		return "the call failed and was made again" + in
	}
	return ""
}

// number is how a summary and the tool recall name a message.
func number(i int) string { return fmt.Sprintf("m%d", i+1) }

// places maps ids to the first message of each.
func places(messages []abi.Message) map[string]int {
	out := make(map[string]int, len(messages))
	for i := range messages {
		if _, taken := out[messages[i].ID]; !taken {
			out[messages[i].ID] = i
		}
	}
	delete(out, "")
	return out
}

func callAt(m *abi.Message, id string) int {
	return slices.IndexFunc(m.ToolCalls, func(c abi.ToolCall) bool { return c.ID == id })
}

// thought reports a message with signed thoughts.
func thought(m *abi.Message) bool {
	return slices.ContainsFunc(m.Content, func(b abi.ContentBlock) bool { return b.Type == abi.BlockThinking && b.Signature != "" })
}

func contentBytes(content []abi.ContentBlock) int {
	n := 0
	for i := range content {
		n += len(content[i].Text) + len(content[i].Data)
	}
	return n
}

// withoutInput replaces the long texts among the arguments of a call.
func withoutInput(calls []abi.ToolCall, id, note string) []abi.ToolCall {
	out := slices.Clone(calls)
	for i := range out {
		if out[i].ID == id {
			out[i].Arguments = withoutTexts(out[i].Arguments, note)
		}
	}
	return out
}

// withoutTexts keeps the shape of arguments. A string that holds JSON stays one.
func withoutTexts(v any, note string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = withoutTexts(e, note)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withoutTexts(e, note)
		}
		return out
	case string:
		if len(v) >= leastMasked && !strings.HasPrefix(strings.TrimSpace(v), "{") {
			return note
		}
	}
	return v
}

// merged are masks and newer ones.
func merged(masks, newer []abi.Mask) []abi.Mask {
	out := slices.Clone(newer)
	for i := range masks {
		if !slices.ContainsFunc(newer, func(k abi.Mask) bool { return k.MessageID == masks[i].MessageID && k.CallID == masks[i].CallID }) {
			out = append(out, masks[i])
		}
	}
	return out
}

// left are the masks of messages that a summary does not replace.
func (x *index) left(masks []abi.Mask, c cover) []abi.Mask {
	var out []abi.Mask
	for i := range masks {
		if _, seen := c.place(x.at(masks[i].MessageID)); seen {
			out = append(out, masks[i])
		}
	}
	return out
}

// place is where a message of the log is in a view under a marker. It reports false when the view does not have it.
func (c cover) place(i int) (int, bool) {
	switch at, kept := slices.BinarySearch(c.keep, i); {
	case i < 0:
		return 0, false
	case i < c.from:
		return i, true
	case i > c.to:
		return i - c.to + c.from + len(c.keep), true
	default:
		return c.from + 1 + at, kept
	}
}
