package inbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// ResumePrompt starts a run without a request, after a [Prepend].
const ResumePrompt = "Continue based on the background task results above."

// DefaultBudget is how many bytes of notifications one message has by default.
const DefaultBudget = 16 << 10

// maxEventText bounds the JSON in [EventText], in bytes, and tagRoom is what its
// tags take at most.
const (
	maxEventText = 8 << 10
	tagRoom      = 2 << 10
)

// reserve is what a reminder needs besides its entries, in bytes.
const reserve = 256

// minText is how much of a text an entry has room for at least, in bytes.
const minText = 256

const (
	opening = "<system-reminder>\nThe following background tasks finished since your last turn:\n\n"
	closing = "</system-reminder>"
)

// FollowUp renders notifications as one user message for a model that has nothing else to do:
// many ends, one message. It covers the first used of them; the rest did not
// fit into budget bytes (0 means [DefaultBudget]) and should stay for the next
// time. Text is escaped, so that a task cannot close the tag or forge an entry, and
// cut when it is too long; task_result reads all of it.
//
// Housekeeping and messages are not rendered and count as used: deliver them otherwise before. If nothing
// is rendered, text is "".
func FollowUp(list []abi.Notice, budget int) (text string, used int) {
	return reminder(list, budget, func(n *abi.Notice, text string) string {
		return fmt.Sprintf("[task %s] %s: %s\n", name(n.TaskID), state(n), text)
	})
}

// Reminder renders notifications for a run that begins with them. Budget and used are as in [FollowUp].
func Reminder(list []abi.Notice, budget int) (text string, used int) {
	return reminder(list, budget, func(n *abi.Notice, text string) string {
		return fmt.Sprintf("Task %s (%s):\n%s\n", name(n.TaskID), state(n), text)
	})
}

// Prepend puts a [Reminder] before a prompt that starts a run. Without notifications it returns the
// prompt as it is.
func Prepend(list []abi.Notice, prompt string, budget int) (text string, used int) {
	text, used = Reminder(list, budget)
	if text == "" {
		return prompt, used
	}
	return text + "\n\n" + prompt, used
}

func reminder(list []abi.Notice, budget int, entry func(*abi.Notice, string) string) (text string, used int) {
	room := cmp.Or(max(budget, 0), DefaultBudget) - reserve
	var entries []string
	for used < len(list) {
		n := &list[used]
		if silent(n) {
			used++
			continue
		}
		bare := entry(n, "")
		said := escape(body(n))
		if len(entries) > 0 && len(bare)+min(len(said), minText) > room {
			break
		}
		e := entry(n, clip(said, max(room-len(bare), minText)))
		room -= len(e) + 1
		entries = append(entries, e)
		used++
	}
	if len(entries) == 0 {
		return "", used
	}
	text = opening + strings.Join(entries, "\n")
	if more := len(list) - used; more > 0 {
		text += fmt.Sprintf("\n(%d more notices will follow)\n", more)
	}
	return text + closing, used
}

// silent reports whether a notification is not rendered.
func silent(n *abi.Notice) bool { return n.Housekeeping || n.Kind == abi.NoticeMessages }

// state is the state of the task, or the event, of a notification.
func state(n *abi.Notice) string {
	if n.Kind == abi.NoticeCustom {
		return "event " + name(cmp.Or(n.EventType, "custom"))
	}
	return name(string(n.Kind))
}

// body is the text of a notification.
func body(n *abi.Notice) string {
	switch n.Kind {
	case abi.NoticeCompleted:
		return cmp.Or(Text(n.Result), "(no output)")
	case abi.NoticeFailed:
		return cmp.Or(n.Error, "(no error text)")
	case abi.NoticeCancelled:
		return "the task was cancelled"
	case abi.NoticeCustom, abi.NoticeMessages:
	}
	return cmp.Or(Text(n.Payload), "(no payload)")
}

// Text returns a value as text: as it is if it is text, nothing if it is nil, else as JSON.
func Text(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("[a value that cannot be written as JSON: %T]", v)
	}
	return string(data)
}

// EventText renders one notification, of whatever kind, as the pseudo tag that has it as
// JSON. The JSON has no angle brackets, so it cannot close the tag; what is longer
// than 8 KiB is cut.
func EventText(n abi.Notice) string { return event(n, maxEventText) }

// Events renders notifications as pseudo tags, one for each. Budget and used are as in
// [FollowUp].
func Events(list []abi.Notice, budget int) (text string, used int) {
	room := cmp.Or(max(budget, 0), DefaultBudget)
	limit := min(max(room-tagRoom, minText), maxEventText)
	var tags []string
	for ; used < len(list); used++ {
		if silent(&list[used]) {
			continue
		}
		tag := event(list[used], limit)
		if len(tags) > 0 && len(tag) > room {
			break
		}
		room -= len(tag) + 1
		tags = append(tags, tag)
	}
	return strings.Join(tags, "\n"), used
}

func event(n abi.Notice, limit int) string {
	data, err := json.Marshal(n)
	if err != nil {
		data = []byte(`{"error":"the notice cannot be written as JSON"}`)
	}
	return `<background-task-event kind="` + name(cmp.Or(string(n.Kind), "event")) + `" task_id="` + name(cmp.Or(n.TaskID, "unknown")) + "\">\n" +
		clip(string(data), limit) + "\n</background-task-event>"
}

// Message returns a text of the runtime as a message for the model: from the user's
// side, and not shown to the user.
func Message(text string) abi.Message {
	return abi.Message{Role: abi.RoleUser, Visibility: abi.VisibilityInternal, Content: []abi.ContentBlock{abi.Text(text)}}
}
