package agent

import (
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// unnamedTool is the name of a call that has none. Such a call is
// answered with an error and never run; a provider would refuse a conversation
// in which the name is empty.
const unnamedTool = "unnamed_tool"

// fit makes an answer one that the log can take, whatever the model sent: it is
// the assistant's, its id is its own, and each of its calls has an id and a name.
// It works on a copy, since the model may hand out the same response twice.
func (r *run) fit(response *abi.Response, messageID string) *abi.Response {
	out := *response
	m := &out.Message
	m.Role, m.ToolCallID = abi.RoleAssistant, ""
	if m.ID == "" || r.thread.has(m.ID) {
		m.ID = messageID
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	seen := make(map[string]bool, len(m.ToolCalls))
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if c.ID == "" || seen[c.ID] {
			c.ID = "call_" + newID()
		}
		seen[c.ID] = true
		if c.Name == "" {
			c.Name = unnamedTool
		}
	}
	return &out
}

// freshID makes an id that the log does not hold.
func (r *run) freshID() string {
	if id := r.cfg.NewID(); id != "" && !r.thread.has(id) {
		return id
	}
	return newID()
}
