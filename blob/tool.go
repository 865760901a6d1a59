package blob

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
)

// ToolReadOutput is the name of the tool.
const ToolReadOutput = "read_output"

// maxPage is how many bytes of a text the tool returns at once, MaxRead how many [Store.Read] does.
const (
	maxPage = 8192
	MaxRead = 1 << 20
)

// Page is a part of a text.
type Page struct {
	// Text from Offset on, whole characters.
	Text   string
	Offset int64
	// Next is where the next page begins, 0 when this was the last. Total is the size
	// of the text. All are in bytes.
	Next, Total int64
}

// Read returns limit bytes of a text from offset on, 8 KiB when limit is 0, and [MaxRead] at most. An offset behind the
// end gives an empty page.
func (s *Store) Read(ctx context.Context, thread, handle string, offset int64, limit int) (Page, error) {
	if limit <= 0 {
		limit = maxPage
	}
	limit = min(limit, MaxRead)
	unknown := fmt.Errorf("blob: handle %.80q: %w", handle, ErrUnknown)
	if len(handle) > store.MaxKey {
		return Page{}, unknown
	}
	snapshot, err := s.cfg.Store.Read(ctx, thread, store.Query{Cells: []store.Range{store.One(cellKind, handle)}})
	if err != nil {
		return Page{}, fmt.Errorf("blob: handle %.80q: %w", handle, err)
	}
	whole, ok := snapshot.Cell(cellKind, handle)
	if !ok {
		return Page{}, unknown
	}
	total := int64(len(whole))
	p := Page{Offset: min(max(offset, 0), total), Total: total}
	rest := string(whole[p.Offset:min(total, p.Offset+int64(limit)+1)]) // one more, to see whether a character ends at limit
	p.Text = cutHead(rest, limit)
	if p.Text == "" {
		p.Text = rest[:min(limit, len(rest))] // not UTF-8, or a limit below one character
	}
	if next := p.Offset + int64(len(p.Text)); next < total {
		p.Next = next
	}
	p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
	return p, nil
}

// Tools is the tool with which a model reads texts of one thread. It is safe for concurrent use.
type Tools struct {
	s      *Store
	thread string
}

// Tools makes the tool of a thread.
func (s *Store) Tools(thread string) Tools { return Tools{s, thread} }

// Tools lists the one tool.
func (Tools) Tools() []abi.Tool {
	whole := map[string]any{"type": "integer", "minimum": int64(0)}
	return []abi.Tool{{
		Name: ToolReadOutput, Kind: abi.ToolRead,
		Description: "Read part of a large output that was stored under a handle. Offset and limit are in bytes.",
		Parameters: map[string]any{
			"type": "object", "required": []any{"handle"},
			"properties": map[string]any{"handle": map[string]any{"type": "string"}, "offset": whole, "limit": whole},
		},
	}}
}

// CallTool answers a call of read_output. Wrong arguments are reported in the result.
func (t Tools) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if call.Name != ToolReadOutput {
		return abi.ToolResult{}, fmt.Errorf("blob: tool %.80q not found", call.Name)
	}
	result := abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess}
	args, _ := call.Arguments.(map[string]any)
	handle, ok := args["handle"].(string)
	if !ok {
		result.Status, result.Message = abi.ToolError, "Invalid arguments: missing 'handle'"
		return result, nil
	}
	p, err := t.s.Read(ctx, t.thread, handle, whole(args["offset"]), int(min(whole(args["limit"]), maxPage)))
	if err != nil {
		result.Status, result.Message = abi.ToolError, err.Error()
		return result, nil //nolint:nilerr // it is reported to the model
	}
	end := fmt.Sprintf("[bytes %d to %d of %d; this is the end]", p.Offset, p.Total, p.Total)
	if p.Next > 0 {
		end = fmt.Sprintf("[bytes %d to %d of %d; continue with offset %d]", p.Offset, p.Next, p.Total, p.Next)
	}
	result.Content = []abi.ContentBlock{abi.Text(p.Text + "\n" + end)}
	return result, nil
}

// whole returns a number of a call's arguments, 0 when it is none.
func whole(v any) int64 {
	switch x := v.(type) {
	case int64:
		return max(x, 0)
	case float64:
		if x > 0 && x < 1<<53 {
			return int64(x)
		}
	}
	return 0
}
