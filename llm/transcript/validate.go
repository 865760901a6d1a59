package transcript

import (
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// Validate reports the first way in which the conversation is not structurally
// valid: an id that stands twice, a role that is not known, a tool call that is
// not answered exactly once, directly after its message and in order. What
// [Read] returns is valid.
func (c *Conversation) Validate() error {
	messages, calls := map[string]bool{}, map[string]bool{}
	var open []abi.ToolCall
	for i := range c.Entries {
		m := &c.Entries[i].Message
		if m.ID == "" || messages[m.ID] {
			return fmt.Errorf("message %d: id %q is empty or stands twice", i, m.ID)
		}
		messages[m.ID] = true
		if m.Role == abi.RoleTool {
			if len(open) == 0 || open[0].ID != m.ToolCallID {
				return fmt.Errorf("message %d: a result of call %q is not due here", i, m.ToolCallID)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d: call %s has no result before it", i, open[0].ID)
		}
		if err := validRole(m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if err := validCalls(m.ToolCalls, calls); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		open = m.ToolCalls
	}
	if len(open) > 0 {
		return fmt.Errorf("call %s has no result", open[0].ID)
	}
	return nil
}

// validCalls adds the ids of the calls to those seen before.
func validCalls(calls []abi.ToolCall, seen map[string]bool) error {
	for i := range calls {
		if id := calls[i].ID; id == "" || seen[id] || calls[i].Name == "" {
			return fmt.Errorf("call id %q is empty or stands twice, or the call has no name", id)
		}
		seen[calls[i].ID] = true
	}
	return nil
}

func validRole(m *abi.Message) error {
	switch m.Role {
	case abi.RoleAssistant:
		return nil
	case abi.RoleSystem, abi.RoleUser:
		if len(m.ToolCalls) > 0 {
			return fmt.Errorf("a %s message has tool calls", m.Role)
		}
		return nil
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
}
