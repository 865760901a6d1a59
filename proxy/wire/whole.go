package wire

// ParseAnswer reads an answer that is not streamed.
func ParseAnswer(p Protocol, b []byte) (*Answer, error) {
	w := Whole(b)
	if _, err := value(b, w.From); err != nil {
		return nil, err
	}
	a := &Answer{Protocol: p, ID: Text(b, "id"), Model: Text(b, "model")}
	if u := Field(b, w, "usage"); u.Exists() && b[u.From] == '{' {
		a.Counted = true
		readUsage(p, b, u, &a.Usage)
	}
	read := a.wholeChat
	switch p {
	case Messages:
		read = a.wholeMessages
	case Responses:
		read = a.wholeResponses
	case Chat:
	}
	if err := read(b, w); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Answer) wholeMessages(b []byte, w Span) error {
	a.Failed = Text(b, "type") == "error"
	a.Stop, a.Done = Text(b, "stop_reason"), !a.Failed
	list := Field(b, w, "content")
	if !list.Exists() {
		return nil
	}
	return Array(b, list, func(i int, at Span) error {
		raw := append([]byte(nil), at.Of(b)...)
		o := Out{Index: i, Type: Text(raw, "type"), ID: Text(raw, "id"), Name: Text(raw, "name"), Raw: raw}
		switch o.Type {
		case TypeText:
			o.Text = Text(raw, "text")
		case TypeCall:
			o.Args = Field(raw, Whole(raw), "input").Of(raw)
		case "redacted_thinking":
			o.Type = TypeThinking
		case "server_tool_use", "mcp_tool_use":
			o.Server = true
		}
		a.Blocks = append(a.Blocks, o)
		return nil
	})
}

func (a *Answer) wholeResponses(b []byte, w Span) error {
	a.Stop = Text(b, "status")
	a.Failed = a.Stop == "failed" || Text(b, "error", "message") != ""
	a.Done = a.Stop == "completed" || a.Stop == "incomplete"
	list := Field(b, w, "output")
	if !list.Exists() {
		return nil
	}
	return Array(b, list, func(i int, at Span) error {
		a.Blocks = append(a.Blocks, ResponsesOut(i, append([]byte(nil), at.Of(b)...)))
		return nil
	})
}

func (a *Answer) wholeChat(b []byte, w Span) error {
	choices := Field(b, w, "choices")
	if a.Failed = !choices.Exists(); a.Failed {
		return nil
	}
	a.Done = true
	return Array(b, choices, func(i int, at Span) error {
		if i > 0 {
			a.Lost = true
			return nil
		}
		a.Stop = String(b, Field(b, at, "finish_reason"))
		s := Stream{Answer: Answer{Protocol: Chat}, open: map[int]*building{}}
		err := Object(b, Field(b, at, "message"), func(key []byte, _, val Span) error {
			switch name := string(key); name {
			case "role":
			case "content":
				if text := String(b, val); text != "" {
					a.Blocks = append(a.Blocks, Out{Index: -1, Type: TypeText, Text: text})
				}
			case "tool_calls":
				if b[val.From] != '[' {
					return nil
				}
				return Array(b, val, func(j int, call Span) error {
					a.Blocks = append(a.Blocks, chatOut(b, j, call))
					return nil
				})
			default:
				s.extra(name, val.Of(b))
			}
			return nil
		})
		a.Extra = s.Extra
		return err
	})
}

func chatOut(b []byte, i int, at Span) Out {
	return Out{
		Index: i, Type: TypeCall, ID: String(b, Field(b, at, "id")), Name: String(b, Field(b, at, "function", "name")),
		Args: []byte(String(b, Field(b, at, "function", "arguments"))), Raw: append([]byte(nil), at.Of(b)...),
	}
}
