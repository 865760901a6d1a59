package mortise

import "errors"

// Messages are the messages of an [Event]. It is a slice as any other, but its
// elements are read from the input when they are asked for, so a hook pays for
// what it looks at and not for the length of the conversation:
//
//	for i, m := range e.Messages {
//		if m.Role() == mortise.RoleUser { ... m.Text() ... }
//	}
type Messages []MessageView

// MessagesOf returns messages as an Event holds them, for tests.
func MessagesOf(list ...Message) Messages {
	if list == nil {
		return nil
	}
	views := make(Messages, len(list))
	for i := range list {
		views[i] = MessageView{value: &list[i]}
	}
	return views
}

// Last returns the last message, or false when there is none.
func (s Messages) Last() (MessageView, bool) {
	if len(s) == 0 {
		return MessageView{}, false
	}
	return s[len(s)-1], true
}

// Err returns the first error that reading any of the messages met, with an offset
// that counts from the start of that message. Such a read gave a zero value. Package plugin looks at it after each hook and answers the
// call with it, so a hook need not.
func (s Messages) Err() error {
	if len(s) == 0 || s[0].fault == nil {
		return nil
	}
	return s[0].fault.err
}

func (s Messages) marshalTo(e *Encoder) {
	if s == nil {
		e.Nil()
		return
	}
	e.OpenArray(len(s))
	for i := range s {
		if s[i].value != nil {
			s[i].value.MarshalTo(e)
		} else {
			e.raw(s[i].raw)
		}
	}
	e.Close()
}

// MessageView is one message of an [Event]. It has a method for each field of
// [Message], which reads that field and nothing else; ask once for what you need
// twice. A MessageView is small and is passed by value. It is valid as long as
// any other string of the input. The zero MessageView is an empty message.
type MessageView struct {
	// raw is the encoded message, of which is known that all of it is there.
	raw   string
	fault *fault
	// value is set by MessagesOf.
	value *Message
}

// fault is the first error of all views of an input.
type fault struct{ err error }

// Message returns the whole message.
func (v MessageView) Message() Message {
	if v.value != nil {
		return *v.value
	}
	var m Message
	if v.raw != "" {
		d := v.decoder()
		m.UnmarshalFrom(&d)
		v.keep(d.err)
	}
	return m
}

// Text returns the text blocks of the message, joined without a separator.
func (v MessageView) Text() string {
	m := Message{Content: v.Content()}
	return m.Text()
}

// find moves d, which reads the message, to the value of a field. It returns false
// when the message has no such field.
func (v MessageView) find(d *Decoder, key string) bool {
	at := seek(v.raw, key)
	switch {
	case at >= 0:
		d.pos, d.depth = at, viewDepth
		return true
	case at == -1 || v.raw == "":
		return false
	}
	n, ok := d.OpenMap()
	if !ok {
		v.keep(d.err)
		return false
	}
	for range n {
		if d.Key() == key {
			return true
		}
		d.Skip()
		if d.err != nil {
			break
		}
	}
	v.keep(d.err)
	return false
}

// str reads a field that is a string. Short ones are common.
func (v MessageView) str(key string) string {
	at := seek(v.raw, key)
	if at >= 0 && v.raw[at]&0xe0 == 0xa0 {
		end := at + 1 + int(v.raw[at]&0x1f)
		if end <= len(v.raw) {
			return v.raw[at+1 : end]
		}
	}
	if at == -1 {
		return ""
	}
	d := v.decoder()
	if !v.find(&d, key) {
		return ""
	}
	x := d.Str()
	v.keep(d.err)
	return x
}

// keep remembers the first error.
func (v MessageView) keep(err error) {
	if err == nil || v.fault == nil || v.fault.err != nil {
		return
	}
	v.fault.err = err
	var refused *DecodeError
	if errors.As(err, &refused) {
		v.fault.err = &DecodeError{Offset: refused.Offset, What: "of a message: " + refused.What}
	}
}

// viewDepth is how deep the fields of a message of an event stand: in the map of the
// event, the array and the map of the message.
const viewDepth = 3

func (v MessageView) decoder() Decoder { return Decoder{s: v.raw, depth: viewDepth - 1} }

// messages reads an array of messages and leaves them unread, but for where each of
// them ends.
func (d *Decoder) messages() Messages {
	n, ok := d.OpenArray()
	if !ok {
		return nil
	}
	shared := new(fault)
	list := make(Messages, n)
	pos := d.pos
	for i := range list {
		end := measure(d.s, pos)
		if end < 0 {
			d.pos = pos
			d.Skip() // says what is wrong
			d.fail(pos, "a message that cannot be measured")
			return nil
		}
		list[i].raw, list[i].fault = d.s[pos:end], shared
		pos = end
	}
	d.pos = pos
	d.Close()
	return list
}
