package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// ToolReadRelay is the name of the tool.
const ToolReadRelay = "read_relay"

// maxPage is how many bytes one page has at most.
const maxPage = 8192

// Page is a part of a text.
type Page struct {
	// Text from Offset on, whole characters.
	Text   string
	Offset int64
	// Next is where the next page begins, 0 when this was the last. Total is the size
	// of the text. All are in bytes.
	Next, Total int64
}

// Read returns limit bytes of a text from offset on; 0, and more than 8 KiB, mean
// 8 KiB. An offset behind the end gives an empty page.
func (r *Relay) Read(handle string, offset int64, limit int) (Page, error) {
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	r.mu.Lock()
	known, ok := r.files[handle]
	if ok {
		known.used = r.cfg.Now()
		r.files[handle] = known
	}
	r.mu.Unlock()
	if !ok {
		return Page{}, fmt.Errorf("relay: handle %.80q: %w", handle, ErrUnknown)
	}
	f, err := r.root.Open(handle)
	if err != nil {
		return Page{}, fmt.Errorf("relay: handle %.80q: %w", handle, ErrUnknown)
	}
	defer f.Close()
	_ = r.root.Chtimes(handle, known.used, known.used) // so that a restart knows it too
	p := Page{Offset: min(max(offset, 0), known.size), Total: known.size}
	buf := make([]byte, limit+1) // one more, to see whether a character ends at limit
	n, err := f.ReadAt(buf, p.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return Page{}, fmt.Errorf("relay: handle %.80q: %w", handle, err)
	}
	text := string(buf[:n])
	p.Text = cutHead(text, limit)
	if p.Text == "" {
		p.Text = text[:min(limit, len(text))] // not UTF-8, or a limit below one character
	}
	if next := p.Offset + int64(len(p.Text)); next < known.size {
		p.Next = next
	}
	p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
	return p, nil
}

// Tools lists the one tool.
func (*Relay) Tools() []abi.Tool {
	whole := map[string]any{"type": "integer", "minimum": int64(0)}
	return []abi.Tool{{
		Name: ToolReadRelay, Kind: abi.ToolRead,
		Description: "Read part of a large output that was stored under a handle. Offset and limit are in bytes.",
		Parameters: map[string]any{
			"type": "object", "required": []any{"handle"},
			"properties": map[string]any{"handle": map[string]any{"type": "string"}, "offset": whole, "limit": whole},
		},
	}}
}

// CallTool answers a call of read_relay. What is wrong is said in the result.
func (r *Relay) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if call.Name != ToolReadRelay {
		return abi.ToolResult{}, fmt.Errorf("relay: tool %.80q not found", call.Name)
	}
	result := abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess}
	args, _ := call.Arguments.(map[string]any)
	handle, ok := args["handle"].(string)
	if !ok {
		result.Status, result.Message = abi.ToolError, "Invalid arguments: missing 'handle'"
		return result, nil
	}
	p, err := r.Read(handle, whole(args["offset"]), int(min(whole(args["limit"]), maxPage)))
	if err != nil {
		result.Status, result.Message = abi.ToolError, err.Error()
		return result, nil //nolint:nilerr // it is said to the model
	}
	end := fmt.Sprintf("[bytes %d to %d of %d; this is the end]", p.Offset, p.Total, p.Total)
	if p.Next > 0 {
		end = fmt.Sprintf("[bytes %d to %d of %d; go on with offset %d]", p.Offset, p.Next, p.Total, p.Next)
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
