package wire

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// chat takes a chunk of Chat Completions, which has no blocks: text is one, and each call is one that ends with the
// finish reason.
func (s *Stream) chat(e Event) Step {
	b, w := e.Data, Whole(e.Data)
	if string(b) == "[DONE]" {
		s.Done = true
		s.chatEnd() // of a server without a finish reason
		return Step{Kind: End}
	}
	if at := Field(b, w, "error"); at.Exists() && string(at.Of(b)) != "null" {
		if s.Failed = true; Field(b, w, "choices").Exists() {
			s.Unclear = "an error has an answer"
		}
		return Step{Kind: Failure}
	}
	step := Step{}
	if s.ID == "" {
		s.ID, s.Model = Text(b, "id"), Text(b, "model")
		step.Kind = Start
	}
	s.usage(b, Field(b, w, "usage"))
	s.list(b, Field(b, w, "choices"), func(i int, at Span) error {
		if i > 0 || s.index(b, Field(b, at, "index")) > 0 {
			s.Unclear = "there are several answers"
		}
		if d := Field(b, at, "delta"); d.Exists() {
			step = s.chatDelta(b, d, step)
		}
		if stop := String(b, Field(b, at, "finish_reason")); stop != "" {
			s.Stop = stop
			s.chatEnd()
			step = Step{Kind: Stop}
		}
		return nil
	})
	return step
}

func (s *Stream) chatDelta(b []byte, at Span, step Step) Step {
	_ = Object(b, at, func(key []byte, _, val Span) error {
		switch name := string(key); name {
		case "role":
		case "content":
			if text := String(b, val); text != "" {
				g := s.part(-1, TypeText)
				g.text = append(g.text, text...)
				s.size += len(text)
				step = Step{Delta, &g.out}
			}
		case "tool_calls":
			s.list(b, val, func(_ int, call Span) error {
				step = s.chatCall(b, s.index(b, Field(b, call, "index")), call)
				return nil
			})
		case "function_call":
			if b[val.From] == '{' {
				step = s.chatCall(b, legacy, at)
			}
		default:
			s.extra(name, val.Of(b))
		}
		return nil
	})
	return step
}

// extra joins fields besides the content: strings are pieces of one, of others the last counts.
func (s *Stream) extra(name string, val []byte) {
	if string(val) == "null" {
		return
	}
	s.size += len(name) + len(val)
	if s.Extra == nil {
		s.Extra = map[string]json.RawMessage{}
	}
	before, there := s.Extra[name]
	if there && before[0] == '"' && val[0] == '"' {
		s.Extra[name] = append(before[:len(before)-1], val[1:]...)
		return
	}
	s.Lost = s.Lost || there
	s.Extra[name] = append([]byte(nil), val...)
}

func (s *Stream) part(index int, kind string) *building {
	g := s.open[index]
	if g == nil {
		g = &building{out: Out{Index: index, Type: kind}}
		s.open[index] = g
		s.size += blockSize
	}
	return g
}

// legacy is the index of the one call that an answer may have instead of tool_calls.
const legacy = -2

func (s *Stream) chatCall(b []byte, index int, at Span) Step {
	_, known := s.open[index]
	g := s.part(index, TypeCall)
	o := s.chatOut(b, index, at)
	if g.out.ID != "" && o.ID != "" && g.out.ID != o.ID || g.out.Name != "" && o.Name != "" && g.out.Name != o.Name || known && len(o.Args) > 0 && g.out.Custom != o.Custom {
		s.Unclear = "two calls have one index"
	}
	g.out.ID, g.out.Name, g.out.Custom, g.out.Item = cmp.Or(o.ID, g.out.ID), cmp.Or(o.Name, g.out.Name), o.Custom || g.out.Custom, o.Item
	g.args = append(g.args, o.Args...)
	s.size += len(o.Args)
	if !known {
		return Step{Open, &g.out}
	}
	return Step{Delta, &g.out}
}

// chatEnd ends all blocks, in their order.
func (s *Stream) chatEnd() {
	for _, index := range slices.Sorted(maps.Keys(s.open)) {
		g := s.open[index]
		delete(s.open, index)
		g.out.Text, g.out.Args = string(g.text), g.args
		if g.out.Type == TypeCall {
			g.out.Raw = ChatCall(&g.out, g.args)
			g.out.Text = ""
		}
		s.Blocks = append(s.Blocks, g.out)
	}
}

// ChatCall is a call in a message of Chat Completions.
func ChatCall(o *Out, args []byte) []byte {
	kind, field := "function", "arguments"
	if o.Custom {
		kind, field = "custom", "input"
	}
	out := append([]byte(`{"id":`), Quote(o.ID)...)
	out = append(append(out, `,"type":"`+kind+`","`+kind+`":{"name":`...), Quote(o.Name)...)
	return append(append(append(out, `,"`+field+`":`...), Quote(string(args))...), "}}"...)
}

// Calling reports whether a call is coming of which holds is true.
func (s *Stream) Calling(holds func(*Out) bool) bool {
	for _, g := range s.open {
		if g.out.Type == TypeCall && holds(&g.out) {
			return true
		}
	}
	return false
}

// WithoutCalls returns a chunk without its calls, nil where nothing else is in it. The role counts in the first answer alone.
func WithoutCalls(b []byte, first bool) []byte {
	var out []Splice
	empty := true
	_ = Array(b, Field(b, Whole(b), "choices"), func(_ int, at Span) error {
		return Object(b, Field(b, at, "delta"), func(key []byte, name, val Span) error {
			switch string(key) {
			case "tool_calls":
				out = append(out, Cut(b, Span{name.From, val.To}))
			case "role":
				empty = empty && !first
			default:
				empty = empty && (string(val.Of(b)) == "null" || string(val.Of(b)) == `""`)
			}
			return nil
		})
	})
	if at := Field(b, Whole(b), "usage"); at.Exists() && b[at.From] == '{' {
		empty = false
	}
	if empty && len(out) > 0 {
		return nil
	}
	return Apply(b, out)
}

// OneCall returns a chunk like another one with nothing but a call.
func OneCall(like, call []byte) []byte {
	var out []Splice
	_ = Array(like, Field(like, Whole(like), "choices"), func(_ int, at Span) error {
		if d := Field(like, at, "delta"); d.Exists() {
			out = append(out, Splice{At: d, New: concat(`{"tool_calls":[`, [][]byte{call}, "]}")})
		}
		if f := Field(like, at, "finish_reason"); f.Exists() {
			out = append(out, Splice{At: f, New: []byte("null")})
		}
		return nil
	})
	if at := Field(like, Whole(like), "usage"); at.Exists() {
		out = append(out, Splice{At: at, New: []byte("null")})
	}
	return Apply(like, out)
}
