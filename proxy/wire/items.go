package wire

import (
	"cmp"
	"strings"
)

// read reads the fields of the object that begins at i: those with a reader by that, and the others by what they are. It returns the
// end of the object.
func (r *Request) read(i int, field func(key []byte, name, val Span), content func(i int) (int, error)) (int, error) {
	var seen names
	return members(r.Body, i, func(key []byte, name Span, i int) (int, error) {
		if err := seen.add(key, name); err != nil {
			return 0, err
		}
		if content != nil && string(key) == "content" {
			return content(i)
		}
		end, err := single(r.Body, i, itemDepth)
		if err == nil {
			field(key, name, Span{i, end})
		}
		return end, err
	})
}

// content reads the content of a message that begins at i, a text or blocks.
func (r *Request) content(it *Item, i int, block func(i int) (Block, int, error)) (end int, err error) {
	it.Plain, it.Blocks = false, nil
	if is(r.Body, i, '[') {
		end, err = elements(r.Body, i, '[', func(i int) (int, error) {
			bl, end, err := block(i)
			bl.Span = Span{i, end}
			it.Blocks = append(it.Blocks, bl)
			return end, err
		})
	} else {
		end, err = single(r.Body, i, itemDepth)
	}
	it.Content = Span{i, end}
	if it.Plain = err == nil && r.Body[i] == '"'; it.Plain {
		it.Blocks = []Block{{Span: it.Content, Type: TypeText, Value: it.Content}}
	}
	return end, err
}

// message reads a message of Anthropic.
func (r *Request) message(it *Item) (int, error) {
	return r.read(it.From, func(key []byte, _, val Span) {
		if string(key) == "role" {
			it.Role = String(r.Body, val)
		}
	}, func(i int) (int, error) { return r.content(it, i, r.block) })
}

// block reads a content block of Anthropic.
func (r *Request) block(i int) (bl Block, end int, err error) {
	b := r.Body
	var input, content, source, text Span
	end, err = r.read(i, func(key []byte, name, val Span) {
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
		case "source":
			source = val
		case "cache_control":
			if b[val.From] == '{' {
				bl.Mark = Span{name.From, val.To}
			}
		}
	}, nil)
	switch bl.Type {
	case "text":
		bl.Value = text
	case "tool_use":
		bl.Value = input
	case "tool_result":
		bl.Value = content
	case "redacted_thinking":
		bl.Type = TypeThinking
	case "search_result":
		bl.Type, bl.Value = TypeText, Span{i, end}
	case "image", "document":
		document := bl.Type == "document"
		bl.Type = TypeMedia
		if kind := String(b, Field(b, source, "type")); kind == "text" || kind == "content" || document && r.encoded(source) {
			bl.Type, bl.Value = TypeText, Span{i, end}
		}
	}
	return bl, end, err
}

// chatMessage reads a message of Chat Completions.
func (r *Request) chatMessage(it *Item) (int, error) {
	b := r.Body
	var calls Span
	var id string
	end, err := r.read(it.From, func(key []byte, _, val Span) {
		switch string(key) {
		case "role":
			it.Role = String(b, val)
		case "tool_calls":
			calls = val
		case "tool_call_id":
			id = String(b, val)
		}
	}, func(i int) (int, error) { return r.content(it, i, r.part) })
	if err != nil {
		return 0, err
	}
	switch it.Role {
	case "developer":
		it.Role = System
	case Results, "function": // the older form
		it.Role, it.Plain = Results, false
		it.Blocks = []Block{{Span: Span{it.From, end}, Type: TypeResult, ID: id, Value: it.Content}}
		return end, nil
	}
	if !calls.Exists() || b[calls.From] != '[' {
		return end, nil
	}
	return end, Array(b, calls, func(_ int, at Span) error {
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

// part reads a part of the content of a message of OpenAI.
func (r *Request) part(i int) (bl Block, end int, err error) {
	if !is(r.Body, i, '{') { // in an item that is no message
		end, err = single(r.Body, i, itemDepth)
		return bl, end, err
	}
	var file Span
	end, err = r.read(i, func(key []byte, name, val Span) {
		switch string(key) {
		case "file":
			file = val
		case "type":
			bl.Type = String(r.Body, val)
		case "text":
			bl.Value = val
		case "cache_control", "prompt_cache_breakpoint":
			bl.Mark = Span{name.From, val.To}
		}
	}, nil)
	switch bl.Type {
	case "text", "input_text", "output_text":
		bl.Type = TypeText
	case "image_url", "input_image", "input_audio":
		bl.Type = TypeMedia
	case "input_file", "file":
		bl.Type = TypeMedia
		if r.encoded(Span{i, end}) || r.encoded(file) {
			bl.Type, bl.Value = TypeText, Span{i, end}
		}
	}
	return bl, end, err
}

// responsesItem reads an item of Responses.
func (r *Request) responsesItem(it *Item) (int, error) {
	b := r.Body
	bl, id := Block{}, ""
	var args, output, tools Span
	end, err := r.read(it.From, func(key []byte, _, val Span) {
		switch string(key) {
		case "role":
			it.Role = String(b, val)
		case "type":
			it.Type = String(b, val)
		case "call_id":
			bl.ID = String(b, val)
		case "id":
			id = String(b, val)
		case "name":
			bl.Name = String(b, val)
		case "arguments", "input":
			args = val
		case "output":
			output = val
		case "tools":
			tools = val
		}
	}, func(i int) (int, error) { return r.content(it, i, r.part) })
	if err != nil {
		return 0, err
	}
	switch {
	case it.Type == "message" || it.Type == "" && it.Role != "":
		if it.Role == "developer" {
			it.Role = System
		}
		return end, nil
	case it.Type == "function_call" || it.Type == "custom_tool_call":
		bl.Type, bl.Value, bl.Custom = TypeCall, args, it.Type == "custom_tool_call"
		it.Role = Assistant
	case strings.HasSuffix(it.Type, "_call_output"):
		bl.Type, bl.Value, it.Role = TypeResult, output, Results
	case it.Type == "reasoning":
		bl.Type, it.Role = TypeThinking, Assistant
	case strings.HasSuffix(it.Type, "_call"):
		if it.Type == shellCall {
			bl.ID = cmp.Or(bl.ID, id)
		}
		bl.Type, it.Role, bl.Server = it.Type, Assistant, bl.ID == ""
		if bl.ID != "" {
			bl.Type = TypeCall
		}
	case it.Type == MoreTools:
		bl.Type, it.Role = it.Type, System
		r.lists = append(r.lists, tools)
	default:
		bl.Type, it.Role = it.Type, Assistant
	}
	bl.Span, it.Plain = Span{it.From, end}, false
	it.Blocks = []Block{bl}
	return end, nil
}
