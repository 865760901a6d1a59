package transcript

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Agents without function calls write a command into their answer, and have its output in the user's place. mini-swe-agent wants exactly one block
// of these (mini-swe-agent, config/default.yaml and agents/default.py); of SWE-agent the last block counts (SWE-agent, tools/parsing.py).
var (
	miniCommand = regexp.MustCompile("(?s)```(?:bash|mswea_bash_command)[ \t]*\n(.*?)\n```")
	sweCommand  = regexp.MustCompile("(?s)```[a-z]*[ \t]*\n(.*?)\n```")
	returned    = regexp.MustCompile(`^<returncode>(-?\d+)</returncode>`)
)

// commands makes calls of the tool bash of such commands, and results of their outputs. What mini-swe-agent says to an answer without one
// command is not the user's.
func (d *draft) commands(format Format) {
	for i := range max(0, len(d.entries)-1) {
		e, next := &d.entries[i].Message, &d.entries[i+1]
		if e.Role != abi.RoleAssistant || len(e.ToolCalls) > 0 || next.Message.Role != abi.RoleUser {
			continue
		}
		if format == FormatSWEAgent && next.Message.Visibility != abi.VisibilityInternal { // no observation
			continue
		}
		command := cutCommand(e, format)
		if command == "" {
			next.Message.Visibility = abi.VisibilityInternal
			continue
		}
		id := fmt.Sprintf("command-%d", i)
		e.ToolCalls = []abi.ToolCall{{ID: id, Name: "bash", Arguments: map[string]any{"command": command}}}
		code := returned.FindStringSubmatch(next.Message.Text())
		next.Message.Role, next.Message.ToolCallID, next.Message.Visibility = abi.RoleTool, id, ""
		next.ToolName, next.Status = "bash", status(len(code) == 2 && code[1] != "0")
	}
}

// cutCommand takes the command out of the text of a message. It returns nothing if there is none, or one too many.
func cutCommand(m *abi.Message, format Format) string {
	for i := range m.Content {
		b := &m.Content[i]
		if b.Type != abi.BlockText {
			continue
		}
		pattern := miniCommand
		if format == FormatSWEAgent {
			pattern = sweCommand
		}
		all := pattern.FindAllStringSubmatchIndex(b.Text, -1)
		if len(all) == 0 || len(all) > 1 && format == FormatMiniSWEAgent {
			continue
		}
		at := all[len(all)-1]
		command := strings.TrimSpace(b.Text[at[2]:at[3]])
		b.Text = strings.TrimSpace(b.Text[:at[0]] + b.Text[at[1]:])
		if b.Text == "" {
			m.Content = append(m.Content[:i], m.Content[i+1:]...)
		}
		return command
	}
	return ""
}
