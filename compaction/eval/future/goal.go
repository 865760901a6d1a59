package future

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Lengths, in characters.
const (
	verbatim = 300 // of a request that a text must hold word for word
	mention  = 60  // of what is enough to find a request or an item again
)

// open is what a conversation leaves to be done.
type open struct {
	// requests are those of the user; stopped are the ones during whose work the
	// user wrote again.
	requests, stopped []string
	// tasks are the items of the last to-do list that are not done.
	tasks []string
}

func openOf(messages []abi.Message) *open {
	o := &open{}
	last := -1 // the latest message that is no word of the user
	for i := range messages {
		m := &messages[i]
		if m.Role == abi.RoleAssistant {
			for _, c := range m.ToolCalls {
				if list, ok := tasks(c); ok {
					o.tasks = list
				}
			}
		}
		text := request(m)
		if text == "" {
			if m.Role == abi.RoleAssistant || m.Role == abi.RoleTool {
				last = i
			}
			continue
		}
		if n := len(o.requests); n > 0 && last >= 0 && (messages[last].Role == abi.RoleTool || len(messages[last].ToolCalls) > 0) {
			o.stopped = append(o.stopped, o.requests[n-1])
		}
		o.requests = append(o.requests, text)
		last = -1
	}
	return o
}

// request is what a message of the user asks for, "" when the user did not write
// it. Of a command it is the arguments.
func request(m *abi.Message) string {
	if m.Role != abi.RoleUser || m.Visibility == abi.VisibilityInternal {
		return ""
	}
	text := strings.TrimSpace(m.Text())
	if strings.HasPrefix(text, "<command-") {
		_, rest, ok := strings.Cut(text, "<command-args>")
		args, _, _ := strings.Cut(rest, "</command-args>")
		if !ok {
			return ""
		}
		return flow(args)
	}
	for _, start := range []string{"<local-command", "<bash-", "<task-notification", "<system-reminder", "[Request interrupted", "Caveat: The messages below"} {
		if strings.HasPrefix(text, start) {
			return ""
		}
	}
	return flow(text)
}

// tasks returns the open items of a call that writes a to-do list or a plan.
func tasks(c abi.ToolCall) ([]string, bool) {
	m, ok := c.Arguments.(map[string]any)
	if !ok {
		return nil, false
	}
	list, ok := m["todos"].([]any)
	if !ok && c.Name == "update_plan" {
		list, ok = m["plan"].([]any)
	}
	if !ok {
		return nil, false
	}
	var out []string
	for _, e := range list {
		text := flow(argument(e, "content", "step", "title", "text"))
		if status := argument(e, "status"); text != "" && status != "completed" && status != "cancelled" {
			out = append(out, text)
		}
	}
	return out, true
}

// verbatimIn reports that a text holds a request word for word, as far as 300
// characters.
func verbatimIn(text, request string) bool {
	return strings.Contains(text, strings.TrimSpace(headOf(request, verbatim)))
}

// mentioned counts those whose beginning a text holds.
func mentioned(text string, list []string) int {
	text = strings.ToLower(text)
	n := 0
	for _, s := range list {
		if strings.Contains(text, strings.ToLower(strings.TrimSpace(headOf(s, mention)))) {
			n++
		}
	}
	return n
}
