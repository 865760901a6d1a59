package wire

import (
	"bytes"
	"strconv"
)

// Rewriter writes events anew once something of an answer was changed: with other indices, numbers and ids.
type Rewriter struct {
	Protocol Protocol
	// Dirty means that events are no longer as they came.
	Dirty bool
	// Base is added to indices, for blocks of earlier answers; Removed is taken from them.
	Base, Removed int
	// ID is that of the first answer.
	ID  string
	seq int64
}

func digits(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// Forward returns an event as the client gets it.
func (w *Rewriter) Forward(e Event) Event {
	b := e.Data
	if w.Protocol == Responses {
		at := Field(b, Whole(b), "sequence_number")
		if !w.Dirty {
			if at.Exists() {
				w.seq = number(b, at)
			}
			return e
		}
		w.seq++
		return e.WithData(w.index(b, "output_index", Splice{At: at, New: digits(w.seq)}))
	}
	if !w.Dirty || len(b) == 0 {
		return e
	}
	if w.Protocol == Messages {
		return e.WithData(w.index(b, "index"))
	}
	if at := Field(b, Whole(b), "id"); at.Exists() && w.ID != "" {
		return e.WithData(Apply(b, []Splice{{At: at, New: Quote(w.ID)}}))
	}
	return e
}

// index moves the index of an event.
func (w *Rewriter) index(b []byte, name string, more ...Splice) []byte {
	var out []Splice
	for _, s := range more {
		if s.At.Exists() {
			out = append(out, s)
		}
	}
	if at := Field(b, Whole(b), name); at.Exists() {
		if n := number(b, at) + int64(w.Base-w.Removed); n >= 0 {
			out = append(out, Splice{At: at, New: digits(n)})
		}
	}
	return Apply(b, out)
}

// Call returns the events of a call with other arguments. Held are those that came.
func (w *Rewriter) Call(o *Out, args []byte, held []Event) []Event {
	switch w.Protocol {
	case Messages:
		i := digits(int64(o.Index + w.Base - w.Removed))
		delta := bytes.Join([][]byte{
			[]byte(`{"type":"content_block_delta","index":`), i, []byte(`,"delta":{"type":"input_json_delta","partial_json":`),
			Quote(string(args)), []byte(`}}`),
		}, nil)
		stop := append(append([]byte(`{"type":"content_block_stop","index":`), i...), '}')
		o.Raw = Apply(o.Raw, []Splice{Set(o.Raw, "input", args)})
		return []Event{w.Forward(held[0].set("{}", "content_block", "input")), NewEvent("content_block_delta", delta), NewEvent("content_block_stop", stop)}
	case Responses:
		return w.responsesCall(o, args, held)
	case Chat:
	}
	o.Raw = ChatCall(o, args)
	return nil
}

// set returns an event with another value of a field, if it has that.
func (e Event) set(val string, path ...string) Event {
	if at := Field(e.Data, Whole(e.Data), path...); at.Exists() && string(at.Of(e.Data)) != val {
		return e.WithData(Apply(e.Data, []Splice{{At: at, New: []byte(val)}}))
	}
	return e
}

func (w *Rewriter) responsesCall(o *Out, args []byte, held []Event) []Event {
	name, kind := "arguments", "response.function_call_arguments"
	if o.Custom {
		name, kind = "input", "response.custom_tool_call_input"
	}
	o.Raw = Apply(o.Raw, []Splice{Set(o.Raw, name, Quote(string(args)))})
	itemID := Text(o.Raw, "id")
	event := func(suffix, field string) Event {
		data := Marshal(map[string]any{
			"type": kind + suffix, "item_id": itemID, "output_index": o.Index, field: string(args), "sequence_number": 0,
		})
		return NewEvent(kind+suffix, data)
	}
	done := held[len(held)-1].set(string(o.Raw), "item")
	w.Dirty = true // there may be fewer events than came
	all := []Event{held[0].set(`""`, "item", name), event(".delta", "delta"), event(".done", name), done}
	if len(held) == 1 { // a server that opens no item
		all = all[3:]
	}
	for i := range all {
		all[i] = w.Forward(all[i])
	}
	return all
}

// Notice returns the events of a text block of our own. Index is that among what the client has.
func (w *Rewriter) Notice(index int, text string) []Event {
	w.Dirty = true
	o := NewText(text)
	o.Index = index - w.Base + w.Removed
	out := o.Events(w.Protocol, w.ID)
	for i := range out {
		out[i] = w.Forward(out[i])
	}
	return out
}

// Merged is the end of an answer that has several parts.
type Merged struct {
	ID    string
	Usage Usage // inputs of the last part, outputs of all
	// Stop replaces the stop reason unless it is empty.
	Stop string
	// Output are the items or blocks of all parts that the client has.
	Output [][]byte
	Text   string
}

// End returns an event at the end of an answer as the client gets it.
func (w *Rewriter) End(e Event, m *Merged) Event {
	b := e.Data
	all := Whole(b)
	switch w.Protocol {
	case Messages:
		if Text(b, "type") != "message_delta" {
			return e
		}
		s := []Splice{}
		if at := Field(b, all, "delta", "stop_reason"); at.Exists() && m.Stop != "" {
			s = append(s, Splice{At: at, New: Quote(m.Stop)})
		}
		if at := Field(b, all, "usage"); at.Exists() {
			s = append(s, Splice{At: at, New: m.usage(b, at, Messages)})
		}
		return e.WithData(Apply(b, s))
	case Responses:
		resp := Field(b, all, "response")
		if !resp.Exists() {
			return w.Forward(e)
		}
		inner := m.Whole(Responses, resp.Of(b))
		w.Dirty = true
		return w.Forward(e.WithData(Apply(b, []Splice{{At: resp, New: inner}})))
	case Chat:
	}
	if string(b) == "[DONE]" {
		return e
	}
	s := []Splice{}
	_ = Array(b, Field(b, all, "choices"), func(_ int, at Span) error {
		if f := Field(b, at, "finish_reason"); f.Exists() && m.Stop != "" && b[f.From] == '"' {
			s = append(s, Splice{At: f, New: Quote(m.Stop)})
		}
		return Object(b, Field(b, at, "delta"), func(key []byte, name, val Span) error {
			if string(key) == "tool_calls" {
				s = append(s, Cut(b, Span{name.From, val.To}))
			}
			return nil
		})
	})
	if at := Field(b, all, "usage"); at.Exists() && b[at.From] == '{' {
		s = append(s, Splice{At: at, New: m.usage(b, at, Chat)})
	}
	return w.Forward(e.WithData(Apply(b, s)))
}

// usage returns a usage object with other numbers, its unknown fields as they are.
func (m *Merged) usage(b []byte, at Span, p Protocol) []byte {
	u := append([]byte(nil), at.Of(b)...)
	set := func(name string, n int64) { u = Apply(u, []Splice{Set(u, name, digits(n))}) }
	switch p {
	case Messages:
		set("output_tokens", m.Usage.Output)
		if m.Usage.Prompt() > 0 {
			set("input_tokens", m.Usage.Input)
			set("cache_read_input_tokens", m.Usage.Read)
			set("cache_creation_input_tokens", m.Usage.Write5m+m.Usage.Write1h)
		}
	case Responses:
		set("output_tokens", m.Usage.Output)
		set("total_tokens", m.Usage.Prompt()+m.Usage.Output)
	case Chat:
		set("completion_tokens", m.Usage.Output)
		set("total_tokens", m.Usage.Prompt()+m.Usage.Output)
	}
	return u
}

// Whole returns an answer that is not streamed as the client gets it.
func (m *Merged) Whole(p Protocol, b []byte) []byte {
	all := Whole(b)
	var s []Splice
	if at := Field(b, all, "usage"); at.Exists() && b[at.From] == '{' {
		s = append(s, Splice{At: at, New: m.usage(b, at, p)})
	}
	if at := Field(b, all, "id"); at.Exists() && m.ID != "" {
		s = append(s, Splice{At: at, New: Quote(m.ID)})
	}
	list := concat("[", m.Output, "]")
	switch p {
	case Messages:
		s = append(s, Splice{At: Field(b, all, "content"), New: list})
		if at := Field(b, all, "stop_reason"); at.Exists() && m.Stop != "" {
			s = append(s, Splice{At: at, New: Quote(m.Stop)})
		}
	case Responses:
		if at := Field(b, all, "output"); at.Exists() {
			s = append(s, Splice{At: at, New: list})
		}
	case Chat:
		s = append(s, m.choice(b, list)...)
	}
	return Apply(b, s)
}

func (m *Merged) choice(b, list []byte) (s []Splice) {
	_ = Array(b, Field(b, Whole(b), "choices"), func(i int, at Span) error {
		if i > 0 {
			return nil
		}
		if f := Field(b, at, "finish_reason"); f.Exists() && m.Stop != "" {
			s = append(s, Splice{At: f, New: Quote(m.Stop)})
		}
		msg := Field(b, at, "message")
		if c := Field(b, msg, "content"); c.Exists() {
			s = append(s, Splice{At: c, New: nullOr(m.Text)})
		}
		if len(m.Output) > 0 && !Field(b, msg, "tool_calls").Exists() {
			s = append(s, AddField(b, msg, "tool_calls", list))
		}
		_ = Object(b, msg, func(key []byte, name, val Span) error {
			switch {
			case string(key) != "tool_calls":
			case len(m.Output) == 0:
				s = append(s, Cut(b, Span{name.From, val.To}))
			default:
				s = append(s, Splice{At: val, New: list})
			}
			return nil
		})
		return nil
	})
	return s
}
