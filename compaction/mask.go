package compaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// What is shown of a masked output: whichever ends first.
const (
	maskChars = 1600
	maskLines = 24
)

// masks are the tool outputs of a thread that the model sees shortened.
type masks struct {
	// done is how far the log was looked at, shown what replaces messages of it.
	done  int
	shown map[int]abi.Message
	// kept remembers what replaces a block, so that a log that is read again is
	// shown as before.
	kept map[blockKey]string
}

// blockKey finds a block again.
type blockKey struct {
	message     string
	block, size int
}

// mask shortens long tool outputs that the model has read: those before its newest
// message. The index must have read the log.
func (c *Compactor) mask(t *thread, log []abi.Message) {
	if c.conf().Keep == nil {
		return
	}
	x, k := t.index, &t.masks
	if x.again {
		x.again, k.done, k.shown = false, 0, nil
	}
	first := -1
	for i := k.done; i < x.said; i++ {
		e := &x.entries[i]
		if !e.tool || e.pinned || e.raw < c.conf().Policy.MaskTokens || slices.Contains(c.conf().Policy.NeverMask, toolName(x, log, i)) {
			continue
		}
		m, ok := c.masked(t, &log[i], toolName(x, log, i))
		if !ok {
			continue
		}
		if k.shown == nil {
			k.shown = make(map[int]abi.Message)
		}
		k.shown[i], e.tokens = m, EstimateMessage(&m)
		if first < 0 {
			first = i
		}
	}
	k.done = max(k.done, x.said)
	if first >= 0 {
		x.resum(first)
	}
}

// toolName is the name of the tool whose result a message is.
func toolName(x *index, log []abi.Message, i int) string {
	if at := x.entries[i].call; at >= 0 {
		for _, call := range log[at].ToolCalls {
			if call.ID == log[i].ToolCallID {
				return call.Name
			}
		}
	}
	return "tool"
}

// masked is a message with its long blocks shortened. It reports false when there
// are none, or when they cannot be put aside: then nothing may be cut.
func (c *Compactor) masked(t *thread, m *abi.Message, tool string) (abi.Message, bool) {
	k, out, changed := &t.masks, *m, false
	for j := range m.Content {
		b := &m.Content[j]
		if b.Type != abi.BlockText || textTokens(b.Text) < c.conf().Policy.MaskTokens {
			continue
		}
		key := blockKey{m.ID, j, len(b.Text)}
		text, ok := k.kept[key]
		if !ok {
			handle, err := c.conf().Keep(t.id, tool, b.Text)
			if err != nil {
				c.conf().Logger.Warn("a long tool output cannot be put aside and is shown whole", "message_id", m.ID, "bytes", len(b.Text), "error", err)
				continue
			}
			text = maskText(b.Text, handle)
			if k.kept == nil {
				k.kept = make(map[blockKey]string)
			}
			k.kept[key] = text
		}
		if !changed {
			out.Content, changed = slices.Clone(m.Content), true
		}
		out.Content[j].Text = text
	}
	return out, changed
}

// maskText replaces an output.
func maskText(s, handle string) string {
	head, chars, lines := len(s), 0, 0
	for i, c := range s {
		if chars == maskChars || lines == maskLines {
			head = i
			break
		}
		chars++
		if c == '\n' {
			lines++
		}
	}
	return fmt.Sprintf("%s\n\n[Content compacted: original ~%d tokens, showing first %d chars]\n[The whole output is stored as %s; read it with the tool `read_output`, by offset and limit.]",
		strings.ToValidUTF8(s[:head], "\ufffd"), textTokens(s), chars, handle)
}

// over is a log as the model sees it, without a marker.
func (k *masks) over(log []abi.Message) []abi.Message {
	if len(k.shown) == 0 {
		return log
	}
	view := slices.Clone(log)
	for i, m := range k.shown {
		view[i] = m
	}
	return view
}

// within masks a view that a marker has shortened.
func (k *masks) within(view []abi.Message, c cover) {
	for i, m := range k.shown {
		if at, ok := c.place(i); ok {
			view[at] = m
		}
	}
}
