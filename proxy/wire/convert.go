package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/dynamic"
)

// Convert returns an item in the project's terms. A message of Anthropic with results becomes several. Their ids name
// the item and the block: see [Place].
func (r *Request) Convert(i int) []abi.Message {
	it := &r.Items[i]
	m := abi.Message{ID: "i" + strconv.Itoa(i), Role: abi.Role(it.Role)}
	var out []abi.Message
	for j := range it.Blocks {
		switch b := &it.Blocks[j]; b.Type {
		case TypeText:
			m.Content = append(m.Content, abi.Text(r.Words(b)))
		case TypeCall:
			m.ToolCalls = append(m.ToolCalls, abi.ToolCall{ID: b.ID, Name: b.Name, Arguments: r.Arguments(b)})
		case TypeResult:
			id := m.ID
			if len(it.Blocks) > 1 {
				id = fmt.Sprintf("i%d.%d", i, j)
			}
			out = append(out, abi.Message{
				ID: id, Role: abi.RoleTool, ToolCallID: b.ID, Content: []abi.ContentBlock{abi.Text(r.Words(b))},
			})
		case TypeThinking:
			m.Content = append(m.Content, abi.ContentBlock{
				Type: abi.BlockThinking, Text: String(r.Body, Field(r.Body, b.Span, "thinking")),
				Signature: String(r.Body, Field(r.Body, b.Span, "signature")),
			})
		case TypeMedia:
			m.Content = append(m.Content, abi.ContentBlock{Type: abi.BlockImage, Title: "not shown"})
		}
	}
	if len(m.Content)+len(m.ToolCalls) > 0 || len(out) == 0 {
		out = append(out, m)
	}
	return out
}

// Inserted are the messages of items that are in no request, under ids with a prefix.
func Inserted(p Protocol, items []byte, prefix string) (out []abi.Message) {
	r := &Request{Protocol: p, Body: append(append([]byte{'['}, items...), ']')}
	if _, err := elements(r.Body, 0, '[', r.item); err != nil {
		return nil
	}
	for i := range r.Items {
		for _, m := range r.Convert(i) {
			m.ID = prefix + m.ID
			out = append(out, m)
		}
	}
	return out
}

// Place returns the item and the block that an id of [Request.Convert] names; the block is -1 for the whole item.
func Place(id string) (item, block int, ok bool) {
	rest, ok := strings.CutPrefix(id, "i")
	if !ok {
		return 0, 0, false
	}
	first, second, sub := strings.Cut(rest, ".")
	item, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	if !sub {
		return item, -1, true
	}
	block, err = strconv.Atoi(second)
	return item, block, err == nil
}

// Arguments returns those of a call as a value.
func (r *Request) Arguments(b *Block) any {
	if r.Protocol == Messages {
		return Value(b.Value.Of(r.Body))
	}
	s := String(r.Body, b.Value)
	if b.Custom {
		return s
	}
	return Value([]byte(s))
}

// Value returns JSON as a value, with integers as int64 where they fit, or the text where it is none.
func Value(raw []byte) any {
	if len(raw) == 0 {
		return map[string]any{}
	}
	v, err := dynamic.Value(raw)
	if err != nil {
		return string(raw)
	}
	return v
}

// Words returns those of a text, of a document in its place, or of a result.
func (r *Request) Words(b *Block) string { return r.said(b.Value, 0) }

// Worded is what takes the place of the value of a block whose words are others now, a JSON string.
func (r *Request) Worded(b *Block, words []byte) []byte {
	before, after := "", ""
	switch {
	case b.Type == TypeText && is(r.Body, b.Value.From, '{'):
		if before, after = `{"type":"text","text":`, `}`; r.Protocol == Responses {
			before = `{"type":"input_text","text":`
		}
	case b.Type == TypeResult && is(r.Body, b.Value.From, '[') && String(r.Body, Field(r.Body, b.Span, "type")) == "shell_call_output":
		return r.printed(b.Value, words)
	}
	return append(append([]byte(before), words...), after...)
}

// printed are what the commands of a shell printed, with other words, each with the outcome that it had.
func (r *Request) printed(at Span, words []byte) []byte {
	var list [][]byte
	_ = Array(r.Body, at, func(_ int, val Span) error {
		one := append(append([]byte(`{"stdout":`), words...), `,"stderr":""`...)
		outcome := Field(r.Body, val, "outcome")
		code, err := strconv.Atoi(string(Field(r.Body, outcome, "exit_code").Of(r.Body)))
		switch kind := String(r.Body, Field(r.Body, outcome, "type")); {
		case kind == "exit" && err == nil:
			one = append(one, fmt.Sprintf(`,"outcome":{"type":"exit","exit_code":%d}`, code)...)
		case kind == "timeout":
			one = append(one, `,"outcome":{"type":"timeout"}`...)
		}
		list, words = append(list, append(one, '}')), []byte(`""`)
		return nil
	})
	return concat("[", list, "]")
}

// saidDepth is the depth down to which a part is searched for words.
const saidDepth = 6

// data is the base64 in an object, as raw JSON, with its media type.
func (r *Request) data(at Span) (data Span, mediaType string) {
	if !at.Exists() || r.Body[at.From] != '{' {
		return Span{}, ""
	}
	if String(r.Body, Field(r.Body, at, "type")) != "base64" {
		return Field(r.Body, at, "file_data"), ""
	}
	return Field(r.Body, at, "data"), String(r.Body, Field(r.Body, at, "media_type"))
}

// encoded reports whether there is a text in the base64 of an object.
func (r *Request) encoded(at Span) bool {
	data, mediaType := r.data(at)
	return data.To-data.From > 2 && dynamic.IsBase64Text(string(r.Body[data.From+1:min(data.To-1, data.From+4096)]), mediaType)
}

// said are the words of a list of parts, or of one: texts, documents of text, also in base64, results of searches, and what a shell printed.
func (r *Request) said(at Span, depth int) string {
	var out []string
	add := func(val Span) {
		if words := r.said(val, depth+1); words != "" {
			out = append(out, words)
		}
	}
	switch {
	case depth == saidDepth || !at.Exists():
	case r.Body[at.From] == '"':
		return String(r.Body, at)
	case r.Body[at.From] == '[':
		_ = Array(r.Body, at, func(_ int, val Span) error {
			add(val)
			return nil
		})
	case r.Body[at.From] == '{':
		if r.encoded(at) {
			data, mediaType := r.data(at)
			_, words, _ := dynamic.Base64(String(r.Body, data), mediaType)
			out = append(out, words)
		}
		_ = Object(r.Body, at, func(key []byte, _, val Span) error {
			switch name := string(key); {
			case slices.Contains([]string{"text", "title", "context", "content", "source", "file", "stdout", "stderr"}, name),
				name == "data" && String(r.Body, Field(r.Body, at, "type")) == TypeText:
				add(val)
			}
			return nil
		})
	}
	return strings.Join(out, "\n")
}

// SystemText returns the system prompt that is no item of the conversation.
func (r *Request) SystemText() string {
	at := r.Top["system"]
	if r.Protocol == Responses {
		at = r.Top["instructions"]
	}
	if !at.Exists() || r.Body[at.From] != '[' {
		return String(r.Body, at)
	}
	var out strings.Builder
	_ = Array(r.Body, at, func(_ int, val Span) error {
		out.WriteString(String(r.Body, Field(r.Body, val, "text")))
		return nil
	})
	return out.String()
}
