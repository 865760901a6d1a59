package wire

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// Protocol is one of the model APIs.
type Protocol string

// The protocols.
const (
	Messages  Protocol = "anthropic.messages"
	Responses Protocol = "openai.responses"
	Chat      Protocol = "openai.chat"
)

// ProtocolOf returns the protocol of a path that has no escapes, and whether the answer is none of a model to the conversation: a count of tokens,
// or what the provider makes of it for the client to send instead. Servers may take other spellings of a path for it.
func ProtocolOf(at string) (p Protocol, counts bool) {
	at = strings.ToLower(path.Clean("/" + at))
	switch {
	case strings.HasSuffix(at, "/v1/messages"):
		return Messages, false
	case strings.HasSuffix(at, "/v1/messages/count_tokens"):
		return Messages, true
	case strings.HasSuffix(at, "/responses"):
		return Responses, false
	case strings.HasSuffix(at, "/responses/input_tokens"), strings.HasSuffix(at, "/responses/compact"):
		return Responses, true
	case strings.HasSuffix(at, "/chat/completions"):
		return Chat, false
	}
	return "", false
}

// Roles of items.
const (
	User      = "user"
	Assistant = "assistant"
	System    = "system"
	Results   = "tool" // an item of nothing but tool results
)

// Types of blocks. Others keep the name that the protocol has for them.
const (
	TypeText     = "text"
	TypeCall     = "tool_use"
	TypeResult   = "tool_result"
	TypeThinking = "thinking"
	TypeMedia    = "media"
)

// MoreTools is the type of an item of Responses that offers tools: Codex sends all of its own that way to newer models.
const MoreTools = "additional_tools"

// Request is a body, by places in it.
type Request struct {
	Protocol Protocol
	Body     []byte
	Model    string
	Stream   bool
	// Top has the top-level fields.
	Top map[string]Span
	// List is the place of the conversation, whose elements are Items. Text is set when it is a string, which is then the only one.
	List  Span
	Text  bool
	Items []Item
	// Tools are those of the request's own list, and of items with tools.
	Tools []Tool
	lists []Span // of tools in items
	// Fixed is why the conversation must not be edited; empty means that it may.
	Fixed string
	// Observe means that the answer must not be acted on either.
	Observe bool
}

// Item is an element of the conversation: a message, or what Responses has in its place.
type Item struct {
	Span

	Role string
	// Type is that of an item of Responses.
	Type    string
	Content Span
	// Plain means that Content is a string.
	Plain  bool
	Blocks []Block

	digest uint64 // 0 before it was asked for
}

// Block is a part of an item.
type Block struct {
	Span

	Type string
	// ID is that of a tool call, also at its result. Name is the tool.
	ID, Name string
	// Value is the text, the arguments or the result.
	Value Span
	// Mark is the cache marker, with its key.
	Mark Span
	// Custom means that arguments are no JSON.
	Custom bool
	// Server means that the provider executes the tool.
	Server bool
}

// Tool is one of the tools that the request offers.
type Tool struct {
	Span

	Name string
	// Schema is that of its arguments.
	Schema Span
	Mark   Span
}

// Parse finds the places of a body. It reads the conversation once: of long requests nearly all is in it.
func Parse(p Protocol, body []byte) (*Request, error) {
	r := &Request{Protocol: p, Body: body, Top: map[string]Span{}}
	list := "messages"
	if p == Responses {
		list = "input"
	}
	end, err := members(body, 0, func(key []byte, name Span, i int) (end int, err error) {
		if string(key) == list && is(body, i, '[') {
			end, err = elements(body, i, '[', r.item)
		} else {
			end, err = single(body, i, 0)
		}
		if err != nil {
			return 0, err
		}
		if _, twice := r.Top[string(key)]; twice || bytes.IndexByte(name.Of(body), '\\') >= 0 {
			return 0, shape(i, "a field is there twice, or has an escaped name")
		}
		r.Top[string(key)] = Span{i, end}
		return end, nil
	})
	if err != nil {
		return nil, err
	}
	if end = space(body, end); end < len(body) {
		return nil, shape(end, "there is something behind the body")
	}
	r.Model = String(body, r.Top["model"])
	r.Stream = string(r.Top["stream"].Of(body)) == "true"
	r.List = r.Top[list]
	switch {
	case !r.List.Exists():
	case body[r.List.From] == '"':
		r.Text = true
		text := Block{Span: r.List, Type: TypeText, Value: r.List}
		r.Items = []Item{{Span: r.List, Role: User, Content: r.List, Plain: true, Blocks: []Block{text}}}
	case body[r.List.From] != '[':
		return nil, shape(r.List.From, "want a list")
	}
	if err := r.tools(); err != nil {
		return nil, err
	}
	r.fixed()
	return r, nil
}

// item reads the item that begins at i, and returns its end.
func (r *Request) item(i int) (end int, err error) {
	it := Item{Span: Span{From: i}}
	switch r.Protocol {
	case Messages:
		end, err = r.message(&it)
	case Chat:
		end, err = r.chatMessage(&it)
	case Responses:
		end, err = r.responsesItem(&it)
	}
	it.To = end
	r.Items = append(r.Items, it)
	return end, err
}

// TakesTools reports whether tools may be added: the request has a list of its own, with tools.
func (r *Request) TakesTools() bool { return r.Top["tools"].Exists() && len(r.Tools) > 0 }

// Without returns the splices that remove the tools of these names. Tools next to each other go together: each alone would need the comma
// between them.
func (r *Request) Without(names []string) (out []Splice) {
	for i := 0; i < len(r.Tools); i++ {
		if !slices.Contains(names, r.Tools[i].Name) {
			continue
		}
		at := r.Tools[i].Span
		for ; i+1 < len(r.Tools) && slices.Contains(names, r.Tools[i+1].Name); i++ {
			next := r.Tools[i+1].Span
			if string(bytes.TrimSpace(r.Body[at.To:next.From])) != "," {
				break
			}
			at.To = next.To
		}
		out = append(out, Cut(r.Body, at))
	}
	return out
}

func (r *Request) tools() error {
	for _, at := range append([]Span{r.Top["tools"]}, r.lists...) {
		if !at.Exists() || r.Body[at.From] != '[' {
			continue
		}
		if err := Array(r.Body, at, r.tool); err != nil {
			return err
		}
	}
	return nil
}

// tool reads a tool, or those of a namespace.
func (r *Request) tool(_ int, at Span) error {
	t, inner := Tool{Span: at}, Span{}
	err := Object(r.Body, at, func(key []byte, name, val Span) error {
		switch string(key) {
		case "name":
			t.Name = String(r.Body, val)
		case "input_schema", "parameters":
			t.Schema = val
		case "cache_control":
			t.Mark = Span{name.From, val.To}
		case "function":
			t.Name = String(r.Body, Field(r.Body, val, "name"))
			t.Schema = Field(r.Body, val, "parameters")
		case "tools":
			inner = val
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case inner.Exists() && r.Body[inner.From] == '[':
		return Array(r.Body, inner, r.tool)
	}
	r.Tools = append(r.Tools, t)
	return nil
}

// fixed finds out whether the history may be edited.
func (r *Request) fixed() {
	b := r.Body
	has := func(name string) bool {
		at := r.Top[name]
		return at.Exists() && string(at.Of(b)) != "null"
	}
	switch {
	case r.Text:
		r.Fixed = "the input is a string"
	case !r.List.Exists():
		r.Fixed = "there is no conversation in the body"
	case r.Protocol == Responses && (has("previous_response_id") || has("conversation")):
		r.Fixed = "the provider keeps the history"
	case r.Protocol == Responses && has("background") && string(r.Top["background"].Of(b)) != "false":
		r.Fixed = "the answer is fetched later"
	case r.Protocol == Chat && has("n") && string(r.Top["n"].Of(b)) != "1":
		r.Fixed, r.Observe = "there are several answers", true
	case r.Protocol == Messages && bytes.Contains(r.Top["context_management"].Of(b), []byte(`"compact_`)):
		r.Fixed, r.Observe = "the provider compacts", true
	case r.Protocol == Messages:
		for i := range r.Items {
			for _, bl := range r.Items[i].Blocks {
				if bl.Type == "compaction" {
					r.Fixed, r.Observe = "the provider compacts", true
				}
			}
		}
	}
}

// Integrity reports whether the body carries the integrity value of Claude Code: its first system block begins with it. What follows may be a
// project's words.
func (r *Request) Integrity() bool {
	first := r.Top["system"]
	if first.Exists() && r.Body[first.From] == '[' {
		first = Span{}
		_ = Array(r.Body, r.Top["system"], func(i int, val Span) error {
			if i == 0 {
				first = Field(r.Body, val, "text")
			}
			return nil
		})
	}
	rest, found := strings.CutPrefix(String(r.Body, first), "x-anthropic-billing-header:")
	line, _, _ := strings.Cut(rest, "\n")
	return found && strings.Contains(line, "cch=")
}

// Marks counts cache markers of the whole body.
func (r *Request) Marks() int {
	n := 0
	if r.Top["cache_control"].Exists() {
		n++
	}
	for _, t := range r.Tools {
		if t.Mark.Exists() {
			n++
		}
	}
	for i := range r.Items {
		for _, b := range r.Items[i].Blocks {
			if b.Mark.Exists() {
				n++
			}
		}
	}
	if at := r.Top["system"]; at.Exists() && r.Body[at.From] == '[' {
		_ = Array(r.Body, at, func(_ int, val Span) error {
			if Field(r.Body, val, "cache_control").Exists() {
				n++
			}
			return nil
		})
	}
	return n
}
