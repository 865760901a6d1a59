package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// recallTool is the tool that reads what a compaction replaced.
const recallTool = "mortise_recall"

func recall() abi.Tool {
	type object = map[string]any
	return abi.Tool{
		Name: recallTool, Kind: abi.ToolRead,
		Description: "Read messages of the earlier part of this conversation, which a summary replaces, word for word. Handles are in the summary.",
		Parameters: object{"type": "object", "required": []string{"handle"}, "properties": object{
			"handle": object{"type": "string", "description": "A handle of the summary"},
			"query":  object{"type": "string", "description": "Only messages that contain this text"},
		}},
	}
}

// handleItems is how many items one handle names.
const handleItems = 40

// handles name the originals of items.
func handles(epoch, from, to int) (out []string) {
	for i := from; i < to; i += handleItems {
		out = append(out, fmt.Sprintf("h%d-%d-%d", epoch, i, min(i+handleItems, to)-1))
	}
	return out
}

func parseHandle(s string) (epoch, from, to int, ok bool) {
	n, err := fmt.Sscanf(s, "h%d-%d-%d", &epoch, &from, &to)
	return epoch, from, to, err == nil && n == 3
}

// keptID reads the id of a message in the log.
func keptID(id string) (epoch, item int, ok bool) {
	first, rest, found := strings.Cut(strings.TrimPrefix(id, "e"), "/")
	epoch, err := strconv.Atoi(first)
	item, _, placed := wire.Place(rest)
	return epoch, item, found && err == nil && placed
}

// recallBytes is how much one recall returns.
const recallBytes = 30_000

// recall reads originals from the log of this lane.
func (x *exchange) recall(ctx context.Context, call abi.ToolCall) verdict {
	args, _ := call.Arguments.(map[string]any)
	handle, _ := args["handle"].(string)
	query, _ := args["query"].(string)
	epoch, from, to, ok := parseHandle(handle)
	if !ok || !x.replaced(epoch, from, to) {
		return verdict{removed: true, result: "There is no such handle.", failed: true}
	}
	if x.ln.Kept <= to { // of a fork that was just made
		x.save(ctx)
	}
	var b strings.Builder
	const page = 256
	for seq := uint64(1); b.Len() < recallBytes; seq += page {
		list, err := x.s.lanes.Messages(ctx, x.ln.ID, seq, page)
		if err != nil {
			return verdict{removed: true, result: "The log cannot be read.", failed: true}
		}
		for i := range list {
			if e, item, ok := keptID(list[i].ID); ok && e == epoch && item >= from && item <= to {
				x.afterEdits(&list[i], item)
				render(&b, &list[i], query)
			}
		}
		if len(list) < page {
			break
		}
	}
	text := b.String()
	if len(text) > recallBytes {
		text = strings.ToValidUTF8(text[:recallBytes], "") + "\n[cut: use query to read less]"
	}
	return verdict{removed: true, result: cmp.Or(text, "Nothing there matches.")}
}

// replaced reports whether the compaction that is in place replaces items: no others can be recalled.
func (x *exchange) replaced(epoch, from, to int) bool {
	if x.ln == nil || x.s.cfg.Store == nil {
		return false
	}
	sw := x.ln.Swap
	return sw != nil && epoch == x.ln.Epoch && from >= sw.From && to < sw.To
}

// afterEdits takes out of a message of the log what plugins took out of it since it was written.
func (x *exchange) afterEdits(m *abi.Message, item int) {
	_, m.ID, _ = strings.Cut(m.ID, "/")
	list := []abi.Message{*m}
	for _, e := range x.ln.Edits {
		if e.Item == item && len(e.Value) > 0 {
			edited(list, e)
		}
	}
	*m = list[0]
}

func render(b *strings.Builder, m *abi.Message, query string) {
	parts := []string{m.Text()}
	for _, c := range m.ToolCalls {
		args, _ := json.Marshal(c.Arguments)
		parts = append(parts, "[call "+c.Name+" "+string(args)+"]")
	}
	text := strings.Join(parts, "\n")
	if query == "" || strings.Contains(text, query) {
		b.WriteString("[" + string(m.Role) + "]\n" + text + "\n\n")
	}
}
