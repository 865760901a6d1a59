package agent

import (
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// maxNoticeText bounds what a task may put before the model, in bytes.
const maxNoticeText = 8 << 10

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
			`<background-task-event kind="` + escapeTag(string(n.Kind)) + `" task_id="` + escapeTag(n.TaskID) + "\">\n" +
				escapeTag(text) + "\n</background-task-event>")},
	}
}

// escapeTag keeps text from opening or closing a tag. encoding/json already
// escapes angle brackets inside strings; ids and cut text go through here.
func escapeTag(s string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(s)
}
