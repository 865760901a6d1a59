package wire

// ParseAnswer reads an answer that is not streamed.
func ParseAnswer(p Protocol, b []byte) (*Answer, error) {
	w := Whole(b)
	switch end, err := value(b, w.From); {
	case err != nil:
		return nil, err
	case !is(b, w.From, '{') || space(b, end) < len(b):
		return nil, shape(w.From, "want one object")
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
			a.Lost, a.Unclear = true, "there are several answers"
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
					a.Blocks = append(a.Blocks, a.chatOut(b, j, call))
					return nil
				})
			case "function_call":
				if b[val.From] == '{' {
					a.Blocks = append(a.Blocks, a.chatOut(b, legacy, Field(b, at, "message")))
				}
			default:
				s.extra(name, val.Of(b))
			}
			return nil
		})
		a.Extra = s.Extra
		return err
	})
}

// chatOut reads a call of Chat, or what a chunk has of it: of a function, of a tool whose input is no JSON, or the one of a message that has no
// list of calls.
func (a *Answer) chatOut(b []byte, i int, at Span) Out {
	o := Out{Index: i, Type: TypeCall, Raw: append([]byte(nil), at.Of(b)...)}
	of, custom, args := Field(b, at, "function"), Field(b, at, "custom"), "arguments"
	switch o.Custom = custom.Exists() && b[custom.From] == '{'; {
	case i == legacy:
		of, o.Item, o.Custom = Field(b, at, "function_call"), true, false
	case o.Custom && of.Exists() && b[of.From] == '{':
		a.Unclear = "a call is of two tools"
	case o.Custom:
		of, args = custom, "input"
	}
	if !o.Item {
		o.ID = String(b, Field(b, at, "id"))
	}
	o.Name, o.Args = String(b, Field(b, of, "name")), arguments(b, Field(b, of, args))
	return o
}
