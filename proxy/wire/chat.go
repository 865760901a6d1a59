package wire

import "encoding/json"

// chat takes a chunk of Chat Completions, which has no blocks: text is one, and each call is one that ends with the
// finish reason.
func (s *Stream) chat(e Event) Step {
	b, w := e.Data, Whole(e.Data)
	if string(b) == "[DONE]" {
		s.Done = true
		s.chatEnd() // of a server without a finish reason
		return Step{Kind: End}
	}
	if Field(b, w, "error").Exists() {
		s.Failed = true
		return Step{Kind: Failure}
	}
	step := Step{}
	if s.ID == "" {
		s.ID, s.Model = Text(b, "id"), Text(b, "model")
		step.Kind = Start
	}
	s.usage(b, Field(b, w, "usage"))
	_ = Array(b, Field(b, w, "choices"), func(_ int, at Span) error {
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
				s.part(-1, TypeText).text = append(s.part(-1, TypeText).text, text...)
				step = Step{Delta, &s.part(-1, TypeText).out}
			}
		case "tool_calls":
			_ = Array(b, val, func(_ int, call Span) error {
				step = s.chatCall(b, call)
				return nil
			})
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
	if s.Extra == nil {
		s.Extra = map[string]json.RawMessage{}
	}
	before, there := s.Extra[name]
	if there && before[0] == '"' && val[0] == '"' {
		s.Extra[name] = Quote(String(before, Whole(before)) + String(val, Whole(val)))
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
	}
	return g
}

func (s *Stream) chatCall(b []byte, at Span) Step {
	index := int(number(b, Field(b, at, "index")))
	_, known := s.open[index]
	g := s.part(index, TypeCall)
	if id := String(b, Field(b, at, "id")); id != "" {
		g.out.ID = id
	}
	if name := String(b, Field(b, at, "function", "name")); name != "" {
		g.out.Name = name
	}
	g.args = append(g.args, String(b, Field(b, at, "function", "arguments"))...)
	if !known {
		return Step{Open, &g.out}
	}
	return Step{Delta, &g.out}
}

// chatEnd ends all blocks, in their order.
func (s *Stream) chatEnd() {
	for index := -1; len(s.open) > 0 && index < 1024; index++ {
		g := s.open[index]
		if g == nil {
			continue
		}
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
	out := append([]byte(`{"id":`), Quote(o.ID)...)
	out = append(append(out, `,"type":"function","function":{"name":`...), Quote(o.Name)...)
	return append(append(append(out, `,"arguments":`...), Quote(string(args))...), "}}"...)
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

// WithoutCalls returns a chunk without its calls, nil where nothing else is in it.
func WithoutCalls(b []byte) []byte {
	var out []Splice
	empty := true
	_ = Array(b, Field(b, Whole(b), "choices"), func(_ int, at Span) error {
		return Object(b, Field(b, at, "delta"), func(key []byte, name, val Span) error {
			switch string(key) {
			case "tool_calls":
				out = append(out, Cut(b, Span{name.From, val.To}))
			case "role":
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
