package mortise

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
	// raw is the encoded message, whose counts, lengths and depth were checked.
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
		d := Decoder{s: v.raw}
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
	if v.raw == "" {
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
	}
	v.keep(d.err)
	return false
}

// keep remembers the first error.
func (v MessageView) keep(err error) {
	if err == nil || v.fault == nil || v.fault.err != nil {
		return
	}
	v.fault.err = err
	if d, ok := err.(*DecodeError); ok {
		v.fault.err = &DecodeError{Offset: d.Offset, What: "of a message: " + d.What}
	}
}

// messages reads an array of messages and leaves their fields unread.
func (d *Decoder) messages() Messages {
	n, ok := d.OpenArray()
	if !ok {
		return nil
	}
	list := make(Messages, n)
	d.skip(n, list)
	if d.err != nil {
		return nil
	}
	shared := new(fault)
	for i := range list {
		list[i].fault = shared
	}
	d.Close()
	return list
}
