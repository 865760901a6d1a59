package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// geminiBlock has the fields of the parts of the Gemini API, which have no type:
// the one field that is set is their type.
type geminiBlock struct {
	FunctionCall     loose[geminiCall]
	FunctionResponse loose[geminiResponse]
	InlineData       loose[geminiData]
	FileData         loose[geminiData]
	// Thought reports that the text is what the model thought.
	Thought looseBool
}

type geminiCall struct {
	ID, Name looseString
	Args     json.RawMessage
}

type geminiResponse struct {
	ID, Name looseString
	Response json.RawMessage
}

type geminiData struct {
	MIMEType looseString `json:"mimeType"`
	Data     looseString
	FileURI  looseString `json:"fileUri"`
}

// isGemini reports a part of the Gemini API.
func isGemini(o object) bool {
	for _, name := range []string{"functionCall", "functionResponse", "inlineData", "fileData"} {
		if o.is(name, '{') {
			return true
		}
	}
	return o.is("text", '"')
}

// gemini reads a part of the Gemini API.
func (c *content) gemini(raw []byte) error {
	var b block
	if err := json.Unmarshal(raw, &b); err != nil {
		return fmt.Errorf("part: %w", err)
	}
	switch {
	case b.FunctionCall.value != nil:
		return c.addCall(string(b.FunctionCall.value.ID), string(b.FunctionCall.value.Name), arguments(b.FunctionCall.value.Args))
	case b.FunctionResponse.value != nil:
		r := b.FunctionResponse.value
		inner, failed := r.text()
		if err := c.addResult(string(r.ID), failed, inner); err != nil {
			return err
		}
		c.results[len(c.results)-1].name = string(r.Name)
	case b.InlineData.value != nil || b.FileData.value != nil:
		m := cmp.Or(b.InlineData.value, b.FileData.value)
		out := abi.ContentBlock{Type: abi.BlockDocument, MediaType: string(m.MIMEType), Data: string(m.Data), URL: string(m.FileURI)}
		for prefix, t := range map[string]abi.BlockType{"image/": abi.BlockImage, "audio/": abi.BlockAudio, "video/": abi.BlockVideo} {
			if strings.HasPrefix(out.MediaType, prefix) {
				out.Type = t
			}
		}
		c.add(out)
	case bool(b.Thought):
		c.add(abi.ContentBlock{Type: abi.BlockThinking, Text: string(b.Text)})
	default:
		c.text(string(b.Text))
	}
	return nil
}

// text is what a tool answered: its output, its error, or all of it as JSON.
func (r *geminiResponse) text() (content, bool) {
	o, ok := parseObject(r.Response)
	if !ok {
		return rendered(r.Response), false
	}
	if e := o["error"].raw; len(o) == 1 && e != nil {
		return rendered(e), true
	}
	if out := o["output"].raw; len(o) == 1 && out != nil {
		return rendered(out), false
	}
	return rendered(r.Response), false
}

// geminiMessage is a message in a session of Gemini CLI.
type geminiMessage struct {
	ID        looseString
	Timestamp looseString
	Type      string
	Content   json.RawMessage
	Model     looseString
	ToolCalls []struct {
		ID, Name, Status looseString
		Args             json.RawMessage
		Result           json.RawMessage
	}
	Thoughts []struct{ Subject, Description looseString }
	Tokens   loose[struct{ Input, Output, Cached, Thoughts, Total tokens }]
}

// geminiLog reads sessions of Gemini CLI: one document, or JSON lines.
type geminiLog struct {
	r     *reader
	draft draft
}

func (l *geminiLog) finish() (Format, []draft) { return FormatGeminiCLI, []draft{l.draft} }

// isGeminiSession reports the head of a session of Gemini CLI, or all of it.
func isGeminiSession(o object) bool { return o.is("sessionId", '"') && o.is("projectHash", '"') }

func (l *geminiLog) record(line int, data []byte) error {
	o, ok := parseObject(data)
	if !ok {
		return errors.New("a line is not an object")
	}
	if isGeminiSession(o) {
		l.draft.id = o.text("sessionId")
		l.draft.setTitle(o.text("summary"))
		lines := &lineCounter{data: data, line: line}
		messages := o["messages"]
		for offset, part := range elements(messages.raw) {
			if err := l.message(lines.at(messages.offset+offset), part); err != nil {
				return err
			}
		}
		return nil
	}
	if o.text("type") == "" {
		l.r.skip("update of the session")
		return nil
	}
	return l.message(line, data)
}

func (l *geminiLog) message(line int, data []byte) error {
	var m geminiMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	l.r.firstMessage(data)
	e := Entry{Message: abi.Message{ID: string(m.ID)}, Line: line, At: moment(string(m.Timestamp))}
	var c content
	switch m.Type {
	case "user":
		e.Message.Role = abi.RoleUser
	case "gemini":
		e.Message.Role, e.Model = abi.RoleAssistant, string(m.Model)
		for _, t := range m.Thoughts {
			c.add(abi.ContentBlock{Type: abi.BlockThinking, Text: strings.TrimSpace(string(t.Subject + "\n" + t.Description))})
		}
		e.Usage = m.usage()
	default: // info, error, warning: shown to the user, not to the model
		l.r.skip(cmp.Or(m.Type, "without a type"))
		return nil
	}
	if err := c.geminiParts(m.Content); err != nil {
		return err
	}
	if err := m.calls(&c); err != nil {
		return err
	}
	return l.r.add(&l.draft, e, c)
}

func (m *geminiMessage) usage() *abi.Usage {
	t := m.Tokens.value
	if t == nil || t.Total == 0 {
		return nil
	}
	return &abi.Usage{
		PromptTokens: int64(t.Input), CompletionTokens: int64(t.Output), TotalTokens: int64(t.Total),
		CacheReadTokens: int64(t.Cached), ThinkingTokens: int64(t.Thoughts),
	}
}

// calls reads the calls of an answer and their results.
func (m *geminiMessage) calls(c *content) error {
	for _, call := range m.ToolCalls {
		if err := c.addCall(string(call.ID), string(call.Name), arguments(call.Args)); err != nil {
			return err
		}
	}
	for _, call := range m.ToolCalls {
		if first(call.Result) == 0 || first(call.Result) == 'n' {
			continue
		}
		var inner content
		if err := inner.geminiParts(call.Result); err != nil {
			return err
		}
		if len(inner.results) > 0 {
			inner = content{blocks: inner.results[0].blocks}
		}
		if err := c.addResult(string(call.ID), call.Status == "error" || call.Status == "cancelled", inner); err != nil {
			return err
		}
	}
	return nil
}

// geminiParts reads text, a part, or a list of both.
func (c *content) geminiParts(raw []byte) error {
	switch first(raw) {
	case '"':
		return c.parse(raw)
	case '{':
		return c.gemini(raw)
	case '[':
		for _, part := range elements(raw) {
			if err := c.geminiParts(part); err != nil {
				return err
			}
		}
	}
	return nil
}
