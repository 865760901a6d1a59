package agent

import (
	"context"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// originalOf is what abi.MetadataOriginal holds of an answer that plugins replaced.
func originalOf(m *abi.Message, by []string) map[string]any {
	calls := make([]any, len(m.ToolCalls))
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		calls[i] = map[string]any{"id": c.ID, "name": c.Name, "arguments": c.Arguments}
	}
	names := make([]any, len(by))
	for i := range by {
		names[i] = by[i]
	}
	return map[string]any{"content": blocksOf(m.Content), "tool_calls": calls, "replaced_by": names}
}

// blocksOf makes a dynamic value of content, with the names of its JSON.
func blocksOf(content []abi.ContentBlock) []any {
	out := make([]any, len(content))
	for i := range content {
		b := &content[i]
		fields := map[string]any{"type": string(b.Type)}
		for name, text := range map[string]string{
			"text": b.Text, "signature": b.Signature, "media_type": b.MediaType, "url": b.URL, "data": b.Data, "title": b.Title,
		} {
			if text != "" {
				fields[name] = text
			}
		}
		out[i] = fields
	}
	return out
}

// Original returns an assistant message of a stored log as the model wrote it, or false if no
// plugin replaced it.
func Original(m *abi.Message) (abi.Message, bool) {
	kept, ok := m.Metadata[abi.MetadataOriginal].(map[string]any)
	if !ok {
		return abi.Message{}, false
	}
	out := *m
	out.Content, out.ToolCalls = nil, nil
	blocks, _ := kept["content"].([]any)
	for _, b := range blocks {
		fields, _ := b.(map[string]any)
		text := func(name string) string { s, _ := fields[name].(string); return s }
		out.Content = append(out.Content, abi.ContentBlock{
			Type: abi.BlockType(text("type")), Text: text("text"), Signature: text("signature"), MediaType: text("media_type"),
			URL: text("url"), Data: text("data"), Title: text("title"),
		})
	}
	calls, _ := kept["tool_calls"].([]any)
	for _, c := range calls {
		fields, _ := c.(map[string]any)
		id, _ := fields["id"].(string)
		name, _ := fields["name"].(string)
		out.ToolCalls = append(out.ToolCalls, abi.ToolCall{ID: id, Name: name, Arguments: fields["arguments"]})
	}
	out.Metadata = maps.Clone(m.Metadata)
	delete(out.Metadata, abi.MetadataOriginal)
	return out, true
}

// withOriginal is the message as the log keeps it.
func withOriginal(m abi.Message, original any) abi.Message {
	if original == nil {
		return m
	}
	metadata := maps.Clone(m.Metadata)
	if metadata == nil {
		metadata = make(map[string]any, 1)
	}
	metadata[abi.MetadataOriginal] = original
	m.Metadata = metadata
	return m
}

// split takes the original from a message that comes to the log, so that no view of the log
// has it.
func (t *Thread) split(m *abi.Message) {
	original, ok := m.Metadata[abi.MetadataOriginal]
	if !ok {
		return
	}
	t.originals[m.ID] = original
	m.Metadata = maps.Clone(m.Metadata)
	delete(m.Metadata, abi.MetadataOriginal)
	if len(m.Metadata) == 0 {
		m.Metadata = nil
	}
}

// whole returns messages of the log with their originals. The caller holds the lock.
func (t *Thread) whole(messages []abi.Message) []abi.Message {
	if len(t.originals) == 0 {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		out[i] = withOriginal(out[i], t.originals[out[i].ID])
	}
	return out
}

// replaced tells listeners of an answer that plugins replaced: of calls that they know from
// the stream and that will not be.
func (r *run) replaced(ctx context.Context, before, now *abi.Message) {
	r.rewrote = true
	for i := range before.ToolCalls {
		c := before.ToolCalls[i]
		if !r.announced[c.ID] || slices.ContainsFunc(now.ToolCalls, func(o abi.ToolCall) bool { return o.ID == c.ID }) {
			continue
		}
		r.send(ctx, Event{Type: EventToolCallCancel, Call: &abi.ToolCall{ID: c.ID, Name: c.Name}, Reason: "a plugin replaced the answer"})
	}
}
