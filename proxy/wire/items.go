package wire

import "strings"

// message reads a message of Anthropic.
func (r *Request) message(it *Item) error {
	b := r.Body
	err := Object(b, it.Span, func(key []byte, _, val Span) error {
		switch string(key) {
		case "role":
			it.Role = String(b, val)
		case "content":
			it.Content = val
		}
		return nil
	})
	if err != nil || !it.Content.Exists() {
		return err
	}
	if b[it.Content.From] == '"' {
		it.Plain = true
		it.Blocks = []Block{{Span: it.Content, Type: TypeText, Value: it.Content}}
		return nil
	}
	return Array(b, it.Content, func(_ int, at Span) error {
		bl, err := r.block(at)
		it.Blocks = append(it.Blocks, bl)
		return err
	})
}

// block reads a content block of Anthropic.
func (r *Request) block(at Span) (Block, error) {
	b := r.Body
	bl := Block{Span: at}
	var input, content, text Span
	err := Object(b, at, func(key []byte, name, val Span) error {
		switch string(key) {
		case "type":
			bl.Type = String(b, val)
		case "text":
			text = val
		case "id", "tool_use_id":
			bl.ID = String(b, val)
		case "name":
			bl.Name = String(b, val)
		case "input":
			input = val
		case "content":
			content = val
		case "cache_control":
			if b[val.From] == '{' {
				bl.Mark = Span{name.From, val.To}
			}
		}
		return nil
	})
	switch bl.Type {
	case "text":
		bl.Value = text
	case "tool_use":
		bl.Value = input
	case "tool_result":
		bl.Value = content
	case "redacted_thinking":
		bl.Type = TypeThinking
	case "image", "document":
		bl.Type = TypeMedia
	}
	return bl, err
}

// chatMessage reads a message of Chat Completions.
func (r *Request) chatMessage(it *Item) error {
	b := r.Body
	var calls Span
	var id string
	err := Object(b, it.Span, func(key []byte, _, val Span) error {
		switch string(key) {
		case "role":
			it.Role = String(b, val)
		case "content":
			it.Content = val
		case "tool_calls":
			calls = val
		case "tool_call_id":
			id = String(b, val)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if it.Role == "developer" {
		it.Role = System
	}
	if it.Role == Results {
		it.Blocks = []Block{{Span: it.Span, Type: TypeResult, ID: id, Value: it.Content}}
		return nil
	}
	if err := r.parts(it); err != nil || !calls.Exists() || b[calls.From] != '[' {
		return err
	}
	return Array(b, calls, func(_ int, at Span) error {
		f := Field(b, at, "function")
		bl := Block{Span: at, Type: TypeCall, ID: String(b, Field(b, at, "id"))}
		if f.Exists() {
			bl.Name, bl.Value = String(b, Field(b, f, "name")), Field(b, f, "arguments")
		} else if c := Field(b, at, "custom"); c.Exists() {
			bl.Name, bl.Value, bl.Custom = String(b, Field(b, c, "name")), Field(b, c, "input"), true
		}
		it.Blocks = append(it.Blocks, bl)
		return nil
	})
}

// parts reads the content of a message of OpenAI.
func (r *Request) parts(it *Item) error {
	b := r.Body
	if !it.Content.Exists() {
		return nil
	}
	switch b[it.Content.From] {
	case '"':
		it.Plain = true
		it.Blocks = []Block{{Span: it.Content, Type: TypeText, Value: it.Content}}
		return nil
	case '[':
	default:
		return nil
	}
	return Array(b, it.Content, func(_ int, at Span) error {
		bl := Block{Span: at}
		err := Object(b, at, func(key []byte, name, val Span) error {
			switch string(key) {
			case "type":
				bl.Type = String(b, val)
			case "text":
				bl.Value = val
			case "cache_control", "prompt_cache_breakpoint":
				bl.Mark = Span{name.From, val.To}
			}
			return nil
		})
		switch bl.Type {
		case "text", "input_text", "output_text":
			bl.Type = TypeText
		case "image_url", "input_image", "input_file", "file", "input_audio":
			bl.Type = TypeMedia
		}
		it.Blocks = append(it.Blocks, bl)
		return err
	})
}

// item reads an item of Responses.
func (r *Request) item(it *Item) error {
	b := r.Body
	bl := Block{Span: it.Span}
	var args, output Span
	err := Object(b, it.Span, func(key []byte, _, val Span) error {
		switch string(key) {
		case "role":
			it.Role = String(b, val)
		case "type":
			it.Type = String(b, val)
		case "content":
			it.Content = val
		case "call_id":
			bl.ID = String(b, val)
		case "name":
			bl.Name = String(b, val)
		case "arguments", "input":
			args = val
		case "output":
			output = val
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case it.Type == "message" || it.Type == "" && it.Role != "":
		if it.Role == "developer" {
			it.Role = System
		}
		return r.parts(it)
	case it.Type == "function_call" || it.Type == "custom_tool_call":
		bl.Type, bl.Value, bl.Custom = TypeCall, args, it.Type == "custom_tool_call"
		it.Role = Assistant
	case strings.HasSuffix(it.Type, "_call_output"):
		bl.Type, bl.Value, it.Role = TypeResult, output, Results
	case it.Type == "reasoning":
		bl.Type, it.Role = TypeThinking, Assistant
	case strings.HasSuffix(it.Type, "_call"):
		bl.Type, it.Role, bl.Server = it.Type, Assistant, bl.ID == ""
		if bl.ID != "" {
			bl.Type = TypeCall
		}
	default:
		bl.Type, it.Role = it.Type, Assistant
	}
	it.Blocks = []Block{bl}
	return nil
}
