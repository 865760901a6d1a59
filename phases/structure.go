package phases

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// CheckStructure reports whether a conversation is one that a model provider takes:
// every message has an id, unique among them, and a known role; calls stand on
// assistant messages only and have ids, unique in their message; the results of
// a message's calls follow it directly, in any order, one for each call. The
// error names the first message that is wrong, and the rule. Calls that still wait for
// their result break the rule too, so a conversation in the middle of its tool
// phases does not pass.
func CheckStructure(messages []abi.Message) error {
	ids := make(map[string]int, len(messages))
	open := openCalls{at: -1}
	for i := range messages {
		m := &messages[i]
		if m.ID == "" {
			return fmt.Errorf("phases: message %d: it has no id", i)
		}
		if first, ok := ids[m.ID]; ok {
			return fmt.Errorf("phases: message %d %.80q: message %d has the same id", i, m.ID, first)
		}
		ids[m.ID] = i
		if err := open.next(i, m); err != nil {
			return fmt.Errorf("phases: message %d %.80q: %w", i, m.ID, err)
		}
	}
	if err := open.closed(); err != nil {
		return fmt.Errorf("phases: message %d %.80q: %w", open.at, messages[open.at].ID, err)
	}
	return nil
}

// openCalls follows the calls that wait for their results.
type openCalls struct {
	at    int // index of the assistant message
	calls []abi.ToolCall
}

func (o *openCalls) next(i int, m *abi.Message) error {
	if err := checkFields(m); err != nil {
		return err
	}
	if m.Role == abi.RoleTool {
		at := slices.IndexFunc(o.calls, func(c abi.ToolCall) bool { return c.ID == m.ToolCallID })
		if at < 0 {
			return fmt.Errorf("it answers call %.80q, which no assistant message directly before it leaves open", m.ToolCallID)
		}
		o.calls = slices.Delete(slices.Clone(o.calls), at, at+1)
		return nil
	}
	if err := o.closed(); err != nil {
		return fmt.Errorf("it stands between a call and its result: message %d: %w", o.at, err)
	}
	o.at, o.calls = i, m.ToolCalls
	return nil
}

// closed returns an error when calls are open.
func (o *openCalls) closed() error {
	if len(o.calls) == 0 {
		return nil
	}
	return fmt.Errorf("its call %.80q has no result", o.calls[0].ID)
}

// checkFields checks the rules that concern one message alone.
func checkFields(m *abi.Message) error {
	switch m.Role {
	case abi.RoleSystem, abi.RoleUser, abi.RoleAssistant:
		if m.ToolCallID != "" {
			return fmt.Errorf("a %s message cannot answer a call", m.Role)
		}
	case abi.RoleTool:
		if m.ToolCallID == "" {
			return errors.New("a tool message must name the call that it answers")
		}
	default:
		return fmt.Errorf("role %.40q is not one of system, user, assistant, tool", m.Role)
	}
	if len(m.ToolCalls) > 0 && m.Role != abi.RoleAssistant {
		return fmt.Errorf("a %s message cannot call tools", m.Role)
	}
	ids := make(map[string]bool, len(m.ToolCalls))
	for i := range m.ToolCalls {
		id := m.ToolCalls[i].ID
		if id == "" {
			return fmt.Errorf("its call %d has no id", i)
		}
		if ids[id] {
			return fmt.Errorf("two of its calls have the id %.80q", id)
		}
		ids[id] = true
	}
	return nil
}

// hasOpenCalls reports whether the conversation ends in calls that wait.
func hasOpenCalls(messages []abi.Message) bool {
	i := len(messages) - 1
	for i >= 0 && messages[i].Role == abi.RoleTool {
		i--
	}
	if i < 0 {
		return false
	}
	for _, c := range messages[i].ToolCalls {
		answers := func(m abi.Message) bool { return m.ToolCallID == c.ID }
		if !slices.ContainsFunc(messages[i+1:], answers) {
			return true
		}
	}
	return false
}

// checkBlocks checks the content that a plugin made for a message. A thinking
// block carries a provider's signature, so it must be one of the original's.
func checkBlocks(blocks, original []abi.ContentBlock) error {
	for i := range blocks {
		b := &blocks[i]
		switch b.Type {
		case abi.BlockText, abi.BlockImage, abi.BlockDocument, abi.BlockAudio, abi.BlockVideo:
		case abi.BlockThinking:
			if !slices.Contains(original, *b) {
				return fmt.Errorf("content block %d: thinking can be kept as it was or left out, not written", i)
			}
		default:
			return fmt.Errorf("content block %d: type %.40q is not known", i, b.Type)
		}
	}
	return nil
}
