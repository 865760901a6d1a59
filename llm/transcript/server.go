package transcript

import (
	"encoding/json"
	"strings"
)

// serverBlock is the union of what a tool that Anthropic runs answers.
type serverBlock struct {
	Type      string
	Title     looseString
	URL       looseString
	ErrorCode looseString `json:"error_code"`
}

// serverResult reads the result of a tool that the provider ran, as in
// web_search_tool_result. Its content is a list, an object, or an error.
func (c *content) serverResult(b *block) error {
	var inner content
	failed := bool(b.IsError)
	read := func(raw []byte) error {
		var s serverBlock
		if first(raw) != '{' || json.Unmarshal(raw, &s) != nil {
			return inner.block(raw)
		}
		switch {
		case strings.HasSuffix(s.Type, "_error"):
			failed = true
			inner.text(string(s.ErrorCode))
		case s.Type == "web_search_result":
			inner.text(strings.TrimSpace(string(s.Title)+"\n"+string(s.URL)) + "\n")
		case s.Type == "text":
			return inner.block(raw)
		default:
			inner.text(rendered(raw).string())
		}
		return nil
	}
	switch first(b.Content) {
	case '[':
		for _, part := range elements(b.Content) {
			if err := read(part); err != nil {
				return err
			}
		}
	case '{':
		if err := read(b.Content); err != nil {
			return err
		}
	default:
		if err := inner.parse(b.Content); err != nil {
			return err
		}
	}
	return c.addResult(string(b.ToolUseID), failed, inner)
}
