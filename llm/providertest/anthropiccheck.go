package providertest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

func (r *anRequest) checkRoles(spec ModelSpec) string {
	if len(r.Messages) == 0 {
		return "messages: at least one message is required"
	}
	for i, m := range r.Messages {
		switch {
		case m.Role == "system" && spec.SystemTurns && i > 0:
			if message := r.checkSystemTurn(i); message != "" {
				return message
			}
		case m.Role == "system":
			return fmt.Sprintf("messages.%d: use the top-level 'system' parameter for the initial system prompt; role 'system' is not supported on this model", i)
		case m.Role != "user" && m.Role != "assistant":
			return fmt.Sprintf("messages: Unexpected role %q. Allowed roles are \"user\" or \"assistant\"", m.Role)
		case i == 0 && m.Role != "user":
			return "messages: first message must use the \"user\" role"
		case len(m.Content) == 0 && m.Role == "user":
			return fmt.Sprintf("messages.%d: user messages must have non-empty content", i)
		case len(m.Content) == 0 && i < len(r.Messages)-1:
			return fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
	}
	last := r.Messages[len(r.Messages)-1]
	if n := len(last.Content); last.Role == "assistant" && n > 0 && last.Content[n-1].Type == "text" {
		if text := last.Content[n-1].Text; strings.TrimRight(text, " \t\r\n") != text {
			return "messages: final assistant content cannot end with trailing whitespace"
		}
	}
	return ""
}

// checkSystemTurn holds that a message of the role system is between one of the user and one of the assistant, or the last, and has text.
func (r *anRequest) checkSystemTurn(i int) string {
	switch {
	case r.Messages[i-1].Role != "user":
		return fmt.Sprintf("messages.%d: a message with role 'system' must follow a 'user' message", i)
	case i < len(r.Messages)-1 && r.Messages[i+1].Role != "assistant":
		return fmt.Sprintf("messages.%d: a message with role 'system' must precede an 'assistant' message or end the array", i)
	case len(r.Messages[i].Content) == 0 || slices.ContainsFunc(r.Messages[i].Content, func(b anBlock) bool { return b.Type != "text" }):
		return fmt.Sprintf("messages.%d: system messages must have non-empty text content", i)
	}
	return ""
}

func (r *anRequest) checkContent() string {
	for i := range r.System {
		if r.System[i].Text == "" {
			return "system: text content blocks must be non-empty"
		}
	}
	for i, m := range r.Messages {
		for j := range m.Content {
			where := fmt.Sprintf("messages.%d.content.%d", i, j)
			if message := m.Content[j].check(where, m.Role); message != "" {
				return message
			}
		}
	}
	return ""
}

func (b *anBlock) check(where, role string) string {
	id := regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	switch b.Type {
	case "text":
		switch {
		case b.Text == "":
			return "messages: text content blocks must be non-empty"
		case strings.TrimSpace(b.Text) == "":
			return "messages: text content blocks must contain non-whitespace text"
		}
	case "image", "document":
		return b.checkSource(where, role)
	case "tool_use":
		switch {
		case role != "assistant":
			return where + ": `tool_use` blocks can only be in `assistant` messages"
		case !id.MatchString(b.ID):
			return where + ".tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
		case !id.MatchString(b.Name) || len(b.Name) > 200:
			return where + ".tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'"
		}
	case "tool_result":
		if role != "user" {
			return where + ": `tool_result` blocks can only be in `user` messages"
		}
		for i := range b.Content {
			inner := fmt.Sprintf("%s.tool_result.content.%d", where, i)
			if b.IsError && b.Content[i].Type != "text" {
				return where + ".tool_result: all content must be type `text` if `is_error` is true"
			}
			if message := b.Content[i].check(inner, role); message != "" {
				return message
			}
		}
	case "thinking", "redacted_thinking":
		if role != "assistant" {
			return where + ": `thinking` blocks can only be in `assistant` messages"
		}
	}
	return ""
}

func (b *anBlock) checkSource(where, role string) string {
	src := &b.Source
	message := ""
	switch {
	case role != "user":
		return where + ": `" + b.Type + "` blocks are not permitted in `assistant` messages"
	case src.Type == "url":
		if !strings.HasPrefix(src.URL, "https://") {
			message = "Only HTTPS URLs are supported."
		}
	case b.Type == "image":
		message = checkImage(src.MediaType, src.Data)
	case src.Type == "text":
		if src.MediaType != "text/plain" {
			message = "media_type: Input should be 'text/plain'"
		}
	case src.MediaType != "application/pdf":
		message = "media_type: Input should be 'application/pdf'"
	default:
		message = checkPDF(src.Data)
	}
	if message == "" {
		return ""
	}
	return where + "." + b.Type + ".source." + src.Type + ": " + message
}

// turn is consecutive messages of one role, which the API combines.
type turn struct {
	role   string
	at     int // of its first message
	blocks []*anBlock
}

func (r *anRequest) turns() (out []turn) {
	for i := range r.Messages {
		m := &r.Messages[i]
		if n := len(out); n == 0 || out[n-1].role != m.Role {
			out = append(out, turn{role: m.Role, at: i})
		}
		t := &out[len(out)-1]
		for j := range m.Content {
			t.blocks = append(t.blocks, &m.Content[j])
		}
	}
	return out
}

// checkResults holds that each call has its result first thing in the next message.
func (r *anRequest) checkResults() string {
	var open []string
	seen := map[string]bool{}
	at := 0
	for _, t := range append(r.turns(), turn{role: "end"}) {
		if t.role == "end" && len(open) == 0 {
			break
		}
		var results []string
		leading := true
		for j, b := range t.blocks {
			where := fmt.Sprintf("messages.%d.content.%d: ", t.at, j)
			switch {
			case b.Type == "tool_result" && !slices.Contains(open, b.ToolUseID):
				return where + "unexpected `tool_use_id` found in `tool_result` blocks: " + b.ToolUseID +
					". Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
			case b.Type == "tool_result" && slices.Contains(results, b.ToolUseID):
				return where + "each tool_use must have a single result. Found multiple `tool_result` blocks with id: " + b.ToolUseID
			case b.Type == "tool_result" && leading:
				results = append(results, b.ToolUseID)
			case b.Type == "tool_use" && seen[b.ID]:
				return where + "`tool_use` ids must be unique"
			default:
				leading = false
			}
			if b.Type == "tool_use" {
				seen[b.ID] = true
			}
		}
		missing := slices.DeleteFunc(slices.Clone(open), func(id string) bool { return slices.Contains(results, id) })
		if len(missing) > 0 {
			return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
				"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", at, strings.Join(missing, ", "))
		}
		open, at = nil, t.at
		for _, b := range t.blocks {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
	}
	return ""
}

func (r *anRequest) checkThinking(s *Server, spec ModelSpec) string {
	for i, m := range r.Messages {
		for j := range m.Content {
			b := &m.Content[j]
			text, ok := s.signed(b.Signature + b.Data)
			switch {
			case b.Type == "thinking" && (!ok || text != b.Thinking):
				return fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
			case b.Type == "redacted_thinking" && !ok:
				return fmt.Sprintf("messages.%d.content.%d: Invalid `data` in `redacted_thinking` block", i, j)
			case b.thinks() && j == len(m.Content)-1 && (i == len(r.Messages)-1 || r.Messages[i+1].Role == "user"):
				return fmt.Sprintf("messages.%d: The final block in an assistant message cannot be `thinking`.", i)
			}
		}
	}
	if message := r.checkEffort(spec); message != "" || !r.thinking() {
		return message
	}
	return r.checkLoop(s)
}

// checkEffort checks the parameters of thinking.
func (r *anRequest) checkEffort(spec ModelSpec) string {
	if e := r.OutputConfig.Effort; e != "" && (spec.Thinking == ThinkingNone || spec.Thinking == ThinkingBudget) {
		return "This model does not support the effort parameter."
	}
	manual := r.Thinking.Type == "enabled"
	switch {
	case !r.thinking():
		return ""
	case spec.Thinking == ThinkingNone:
		return "thinking: thinking is not supported on this model"
	case manual && spec.Thinking == ThinkingAdaptive:
		return "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."
	case !manual && spec.Thinking == ThinkingBudget:
		return "adaptive thinking is not supported on this model"
	case manual && r.Thinking.Budget < 1024:
		return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
	case manual && r.MaxTokens > 0 && r.MaxTokens <= r.Thinking.Budget:
		return "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at " +
			"https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"
	case r.Temperature != nil && *r.Temperature != 1:
		return "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at " +
			"https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking"
	case r.TopP != nil && *r.TopP < 0.95:
		return "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."
	case r.TopK != nil:
		return "`top_k` must be unset when thinking is enabled."
	}
	return ""
}

// checkLoop holds that the turn that is under way has the thinking that came before its calls.
func (r *anRequest) checkLoop(s *Server) string {
	turns := r.turns()
	first := len(turns)
	for i := len(turns) - 1; i > 0; i-- {
		if turns[i].role == "user" && !slices.ContainsFunc(turns[i].blocks, func(b *anBlock) bool { return b.Type == "tool_result" }) {
			break
		}
		if turns[i].role == "assistant" {
			first = i
		}
	}
	for i := first; i < len(turns); i++ {
		t := turns[i]
		if t.role != "assistant" || len(t.blocks) == 0 {
			continue
		}
		if t.blocks[0].thinks() {
			if message := t.checkThoughts(s); message != "" {
				return message
			}
			continue
		}
		issued := slices.ContainsFunc(t.blocks, func(b *anBlock) bool { return s.paired(b.ID) != "" })
		if issued || i == first && r.Thinking.Type == "enabled" {
			return fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, "+
				"a final `assistant` message must start with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks). "+
				"We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.", t.at, t.blocks[0].Type)
		}
	}
	return ""
}

// checkThoughts holds that each call of a turn comes after all the thinking that it came after when it was issued.
func (t *turn) checkThoughts(s *Server) string {
	var thoughts strings.Builder
	for j, b := range t.blocks {
		if b.thinks() {
			thoughts.WriteString("\n" + b.Signature + b.Data)
		}
		if needs := s.paired(b.ID); b.Type == "tool_use" && needs != "" && !strings.HasSuffix(thoughts.String(), "\n"+needs) {
			return fmt.Sprintf("messages.%d.content.%d: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "+
				"These blocks must remain as they were in the original response.", t.at, j)
		}
	}
	return ""
}
