package agent

import (
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// maxNoticeText bounds what a task may put before the model, in bytes.
const maxNoticeText = 8 << 10

// maxAttribute bounds a kind or task id in a tag, in bytes.
const maxAttribute = 256

// noticeMessage words a task's news for the model. The text is escaped, so that
// a task cannot close the tag and speak in another voice, and bounded.
func noticeMessage(n abi.Notice) abi.Message {
	body, err := json.Marshal(n)
	text := string(body)
	if err != nil {
		text = `{"kind":"` + string(n.Kind) + `","error":"the payload cannot be written as JSON"}`
	}
	if len(text) > maxNoticeText {
		text = strings.ToValidUTF8(text[:maxNoticeText], "") + "… [cut]"
	}
	return abi.Message{
		Role:       abi.RoleUser,
		Visibility: abi.VisibilityInternal,
		Content: []abi.ContentBlock{abi.Text(
			`<background-task-event kind="` + attribute(string(n.Kind)) + `" task_id="` + attribute(n.TaskID) + "\">\n" +
				escapeTag(text) + "\n</background-task-event>")},
	}
}

// escapeTag keeps text from opening or closing a tag. encoding/json already
// escapes angle brackets inside strings; ids and cut text go through here.
func escapeTag(s string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(s)
}

// clip bounds foreign text.
func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}

// attribute keeps a value from leaving its quotes and its line, and bounds it.
func attribute(s string) string {
	s = clip(s, maxAttribute)
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
	return strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;").Replace(s)
}
