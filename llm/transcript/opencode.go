package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// openCodeMessage is a message in an exported session of OpenCode.
type openCodeMessage struct {
	Info struct {
		ID, Role, ModelID looseString
		Time              struct{ Created looseString }
		// Summary marks the answer that a compaction wrote.
		Summary looseBool
		Tokens  loose[struct {
			Input, Output, Reasoning tokens
			Cache                    struct{ Read, Write tokens }
		}]
	}
	Parts []openCodePart
}

type openCodePart struct {
	Type              string
	Text              looseString
	Synthetic         looseBool
	Ignored           looseBool
	Tool, CallID      looseString
	MIME              looseString `json:"mime"`
	URL, Filename     looseString
	Prompt            looseString
	State             loose[openCodeState]
	Reason, Signature looseString
}

type openCodeState struct {
	Status looseString
	Input  json.RawMessage
	Output json.RawMessage
	Error  json.RawMessage
}

// isOpenCode reports an exported session.
func isOpenCode(o object) bool {
	if !o.is("info", '{') {
		return false
	}
	for _, part := range elements(o["messages"].raw) {
		m, ok := parseObject(part)
		return ok && m.is("info", '{') && m.is("parts", '[')
	}
	return false
}

// openCode reads an exported session.
func (d *dataset) openCode(o object, lines *lineCounter) (draft, error) {
	var got draft
	if info, ok := parseObject(o["info"].raw); ok {
		got.id = info.text("id")
		got.setTitle(info.text("title"))
	}
	messages := o["messages"]
	for offset, part := range elements(messages.raw) {
		line := lines.at(messages.offset + offset)
		if err := d.openCodeMessage(&got, line, part); err != nil {
			if err := d.broken(line, err); err != nil {
				return got, err
			}
		}
	}
	return got, nil
}

func (d *dataset) openCodeMessage(got *draft, line int, data []byte) error {
	var m openCodeMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	d.r.firstMessage(data)
	e := Entry{Message: abi.Message{ID: string(m.Info.ID)}, Line: line, At: moment(string(m.Info.Time.Created))}
	own, written, err := m.content()
	if err != nil {
		return err
	}
	for _, kind := range own.unknown {
		d.r.skip("part " + kind)
	}
	own.unknown = nil
	switch m.Info.Role {
	case "user":
		e.Message.Role = abi.RoleUser
		if len(own.blocks) > 0 {
			if err := d.r.add(got, e, own); err != nil {
				return err
			}
		}
		if len(written.blocks) == 0 {
			return nil
		}
		e.Message.Visibility = abi.VisibilityInternal
		return d.r.add(got, e, written)
	case "assistant":
		if bool(m.Info.Summary) {
			got.cuts = append(got.cuts, cut{Compaction: Compaction{Summary: own.string(), Line: line, Time: e.At}})
			d.r.skip("compact summary")
			return nil
		}
		e.Message.Role, e.Model = abi.RoleAssistant, string(m.Info.ModelID)
		if t := m.Info.Tokens.value; t != nil && t.Input+t.Output+t.Cache.Read > 0 {
			prompt := t.Input + t.Cache.Read + t.Cache.Write
			e.Usage = &abi.Usage{
				PromptTokens: int64(prompt), CompletionTokens: int64(t.Output), TotalTokens: int64(prompt + t.Output),
				CacheReadTokens: int64(t.Cache.Read), CacheCreationTokens: int64(t.Cache.Write), ThinkingTokens: int64(t.Reasoning),
			}
		}
		return d.r.add(got, e, own)
	}
	return errors.New("a message has no role")
}

// content reads the parts; written is what OpenCode added to a message of the user.
func (m *openCodeMessage) content() (own, written content, err error) {
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case "text":
			if bool(p.Synthetic || p.Ignored) && m.Info.Role == "user" {
				written.text(string(p.Text))
				continue
			}
			own.text(string(p.Text))
		case "reasoning":
			if p.Text != "" {
				own.add(abi.ContentBlock{Type: abi.BlockThinking, Text: string(p.Text)})
			}
		case "tool":
			if err := own.openCodeTool(p); err != nil {
				return own, written, err
			}
		case "file":
			b := block{}
			b.MediaType, b.URL, b.Filename = p.MIME, p.URL, p.Filename
			out := abi.ContentBlock{Type: abi.BlockDocument}
			b.file(&out)
			own.add(out)
		case "subtask":
			own.text(string(p.Prompt))
		case "step-start":
			own.step()
		case "step-finish", "snapshot", "patch", "agent", "retry", "compaction":
		default:
			own.unknown = append(own.unknown, cmp.Or(p.Type, "without a type"))
		}
	}
	return own, written, nil
}

func (c *content) openCodeTool(p *openCodePart) error {
	s := p.State.value
	if s == nil {
		return errors.New("a tool part has no state")
	}
	if err := c.addCall(string(p.CallID), string(p.Tool), arguments(s.Input)); err != nil {
		return err
	}
	switch s.Status {
	case "completed":
		return c.addResult(string(p.CallID), false, rendered(s.Output))
	case "error":
		return c.addResult(string(p.CallID), true, rendered(s.Error))
	}
	return nil
}
